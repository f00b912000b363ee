import { expect } from 'chai';
import { configuredInstallation, productForAll, workload } from '../support/product.ts';

/** Sets the title of a terminal, colours it, turns the direction of the text, and begins a line. */
const EVIL = '\u001b]0;owned\u0007\u001b[31m\u009b2J\u202e\nowned';
/** What a terminal obeys; line feeds are the program's own. */
const RAW = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|^owned/mu;

describe('text of a cluster', () => {
  const product = productForAll();
  before(async () => {
    const image = `registry.example.com/x${EVIL}y:1`;
    await product.cluster.createNode({ name: 'odd', architecture: 'amd64' });
    await product.patch('/api/v1/nodes/odd', {
      metadata: {
        annotations: { 'archaware.dev/managed': JSON.stringify({ taints: [`${EVIL}=b:NoSchedule`], labels: [EVIL] }) },
      },
    });
    for (const [kind, name] of [
      ['Deployment', 'web'],
      ['DaemonSet', 'agent'],
      ['StatefulSet', 'db'],
    ] as const) {
      await product.cluster.apply(workload(kind, name, [image], { template: { imagePullSecrets: [{ name: EVIL }] } }));
    }
    const annotations = { 'archaware.dev/architectures': `${EVIL}amd64`, 'archaware.dev/preferred': EVIL };
    await product.cluster.createPod({ name: 'p', images: [image], metadata: { annotations } });
  });

  const expectClean = async (...args: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await product.asAdmin([...args, '--registries.timeout', '1s']);
    const written = stdout + stderr;
    const found = RAW.exec(written);
    const around = found === null ? '' : JSON.stringify(written.slice(Math.max(0, found.index - 60), found.index + 40));
    expect(around, args.join(' ')).to.equal('');
    return written;
  };
  const COMMANDS: readonly (readonly string[])[] = [
    ['explain', 'p'],
    ['explain', 'deployment/web'],
    ['explain', 'daemonset/agent', '-o', 'yaml'],
    ['plan'],
    ['plan', '--pods'],
    ['plan', '-o', 'json'],
    ['report'],
    ['status'],
    ['status', '-o', 'yaml'],
    ['clean', '--dry-run'],
  ];

  it('reaches a terminal only escaped: annotations and images', async () => {
    for (const command of COMMANDS) await expectClean(...command);
  });

  it('reaches a terminal only escaped: messages of the API server', async () => {
    const heals = [/\/nodes\?/, /\/pods\?/, /\/leases/, /\/deployments\//].map((path) =>
      product.cluster.faults.inject({ path, status: 403, body: { message: `forbidden ${EVIL}` } }),
    );
    for (const command of COMMANDS) await expectClean(...command);
    for (const end of heals) end();
    const end = product.cluster.faults.inject({ path: /\/version/, status: 200, body: { gitVersion: `v1.2.${EVIL}` } });
    expect(await expectClean('plan')).to.include('\\u001b]0;owned');
    end();
  });

  describe('in the configuration of an installation', () => {
    const configMap = (text: string) =>
      JSON.stringify({
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'archaware', name: 'settings' } },
        data: { 'config.yaml': text },
      });
    const USUAL = ['run', '--config', '/etc/archaware/config.yaml'];
    const rows: [what: string, text: string, args: readonly string[]][] = [
      ['an unknown key', `${JSON.stringify(EVIL)}: 1`, USUAL],
      ['a wrong value', `taints: {key: ${JSON.stringify(EVIL)}}`, USUAL],
      ['a key that is not taken', `registries: {caFile: ${JSON.stringify(EVIL)}}`, USUAL],
      ['text that is no YAML', `a: [${EVIL}`, USUAL],
      ['a path', '', ['run', '--config', `/etc/${EVIL}`]],
      ['an argument', '', [...USUAL, `--taints.key=${EVIL}`, `--${EVIL}=1`]],
      ['a policy', `policies: [{name: a}, {name: ${JSON.stringify(EVIL)}}]`, USUAL],
    ];
    for (const [what, text, args] of rows) {
      it(`reaches a terminal only escaped: ${what}`, async () => {
        for (const object of [configMap(text), configuredInstallation({ args })]) await product.cluster.apply(object);
        for (const command of [['plan'], ['status'], ['clean', '--dry-run']]) await expectClean(...command);
      });
    }
  });
});
