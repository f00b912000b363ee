import { expect } from 'chai';
import { startTestRegistry, type TestRegistry } from '../simulator/registry/registry.ts';
import { runInProcess } from '../support/in-process.ts';
import { workload } from '../support/product.ts';

describe('check', () => {
  let registry: TestRegistry;
  beforeEach(async () => {
    registry = await startTestRegistry();
  });
  afterEach(() => registry.stop());

  const image = (name: string, platforms: readonly string[]) => {
    registry.put(name, '1', platforms);
    return `${registry.host}/${name}:1`;
  };
  const check = (input: string, ...args: readonly string[]) =>
    runInProcess(['check', '-f', '-', '--registries.insecure', registry.host, ...args], { input });

  it('prints one line for each image that lacks an architecture or could not be looked up', async () => {
    const [both, amd] = [image('both', ['amd64', 'arm64']), image('amd', ['amd64'])];
    const input = [
      workload('Deployment', 'web', [both, amd]),
      '# a comment, as templates leave it',
      workload('StatefulSet', 'db', [`${registry.host}/nothing:1`]),
      JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } }),
    ].join('\n---\n');
    const { code, stdout, stderr } = await check(input, '--on', 'amd64,arm64');
    expect([code, stderr]).to.deep.equal([2, `1 image was not looked up (${registry.host} not-found: 1)\n`]);
    expect(stdout.split('\n')).to.deep.equal([
      `Deployment default/web: no arm64: ${amd} (c1) is only for linux/amd64`,
      `StatefulSet default/db: unknown: ${registry.host}/nothing:1 (c0) could not be looked up (not-found): ${registry.host} answers 404 Not Found (MANIFEST_UNKNOWN) for the manifest: it does not exist, or may be read only with a pull secret`,
      '',
    ]);
  });

  it('prints objects and what is missing for a program', async () => {
    const amd = image('amd', ['amd64']);
    const input = workload('Deployment', 'web', [amd]);
    const { code, stdout } = await check(input, ...['--on', 'amd64', '--on', 'arm64', '-o', 'json']);
    expect(code).to.equal(2);
    const named = { kind: 'Deployment', namespace: 'default', name: 'web' };
    expect(JSON.parse(stdout)).to.deep.equal({
      objects: [{ ...named, images: [amd], architectures: ['amd64'] }],
      missing: [
        {
          ...named,
          image: amd,
          containers: ['c0'],
          architectures: ['arm64'],
          text: `${amd} (c0) is only for linux/amd64`,
        },
      ],
    });
  });

  it('succeeds where nothing is missing, also for lists', async () => {
    const items = [JSON.parse(workload('Deployment', 'web', [image('both', ['amd64', 'arm64'])]))];
    const { code, stdout } = await check(JSON.stringify({ kind: 'List', items }), '--on', 'amd64,arm64');
    expect([code, stdout]).to.deep.equal([0, '1 workload can run on amd64, arm64.\n']);
  });

  it('checks what archaware would leave alone, and says which kinds it does not know', async () => {
    const labelled = JSON.parse(workload('Deployment', 'web', [image('amd', ['amd64'])]));
    labelled.spec.template.metadata.labels = { 'archaware.dev/ignore': 'true' };
    const rollout = { ...labelled, kind: 'Rollout' };
    const input = `${JSON.stringify(labelled)}\n---\n${JSON.stringify(rollout)}`;
    const { code, stdout, stderr } = await check(input, '--on', 'arm64');
    expect(code).to.equal(2);
    expect(stdout).to.match(/^Deployment default\/web: no arm64: .*\n$/);
    expect(stderr).to.contain('objects of the kind Rollout have containers, but are not checked');
  });

  it('takes the labels of a namespace from the files, as report does', async () => {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', labels: { tier: 'gold' } } };
    const web = workload('Deployment', 'web', [image('both', ['amd64', 'arm64'])]);
    const gold = '[{"name":"gold","namespaceSelector":"tier=gold","schedulable":["amd64"]}]';
    const both = ['-f', '-', '--registries.insecure', registry.host, '--policies', gold];
    for (const words of [['check', '--on', 'arm64'], 'report --to arm64 --fail-under 100'.split(' ')]) {
      const codes = [web, `${JSON.stringify(namespace)}\n---\n${web}`].map(
        async (input) => (await runInProcess([...words, ...both], { input })).code,
      );
      expect(await Promise.all(codes)).to.deep.equal([0, 2]);
    }
  });

  it('writes a comment', async () => {
    const amd = image('amd', ['amd64']);
    const { stdout } = await check(workload('Deployment', 'web', [amd]), '--on', 'amd64,arm64', '-o', 'markdown');
    expect(stdout.split('\n').slice(0, 5)).to.deep.equal([
      '### Architectures: amd64, arm64',
      '',
      '|  | object | image | missing | why |',
      '| --- | --- | --- | --- | --- |',
      `| ❌ | \`Deployment default/web\` | \`${amd}\` | arm64 | \`${amd} (c0) is only for linux/amd64\` |`,
    ]);
  });

  it('does not pass where there is no workload, and says so to programs too', async () => {
    const service = JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } });
    for (const input of ['', '# a template that made nothing\n---\n', service]) {
      const { code, stdout, stderr } = await check(input, '--on', 'arm64');
      expect([code, stdout, stderr]).to.deep.equal([3, '', 'archaware: check: no workload found in standard input\n']);
    }
    const { code, stdout } = await check('', '--on', 'arm64', '-o', 'json');
    expect([code, JSON.parse(stdout)]).to.deep.equal([3, { objects: [], missing: [] }]);
  });

  const mistakes: readonly (readonly [title: string, words: readonly string[], input: string, message: string])[] = [
    ['a line without --on', ['-f', '-'], '', 'check: expected --on with the architectures to run on, for example'],
    ['a command line without -f', ['--on', 'arm64'], '', 'check: expected -f FILE'],
    ['a strange architecture', ['-f', '-', '--on', 'aarch'], '', '--on: got "aarch"'],
    ['what is not YAML', ['-f', '-', '--on', 'arm64'], '{', '-f -: '],
    ['operands', ['web', '-f', '-', '--on', 'arm64'], '', 'check: unexpected'],
  ];
  for (const [title, words, input, message] of mistakes) {
    it(`refuses ${title}`, async () => {
      const { code, stderr } = await runInProcess(['check', ...words], { input });
      expect(stderr).to.contain(message);
      expect(code).to.equal(3);
    });
  }
});
