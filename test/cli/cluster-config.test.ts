import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { at, text } from '../simulator/json.ts';
import { runInProcess } from '../support/in-process.ts';
import { type Product, startProduct } from '../support/product.ts';

describe("the cluster's own configuration", () => {
  let product: Product;
  before(async () => {
    product = await startProduct();
  });
  after(() => product.stop());

  const flags = () => ['--kubeconfig', product.cluster.kubeconfig, '--registries.insecure', product.registry.host];
  /** Some registries here do not exist. */
  const ONCE = ['--lookup-timeout', '0s'];
  const plan = async (...more: readonly string[]) => {
    const { code, stdout, stderr } = await runInProcess(['plan', '-o', 'json', ...flags(), ...ONCE, ...more], {
      clock: product.clock,
    });
    return { code, stdout, stderr };
  };
  const apply = async (...objects: readonly object[]) => {
    for (const object of objects) await product.cluster.apply(JSON.stringify(object));
  };
  const configMap = (namespace: string, name: string, data: Readonly<Record<string, string>>) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace, name },
    data,
  });
  const LABELS = { 'app.kubernetes.io/name': 'archaware-controller' };
  const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const binding = (name: string, inNamespace: string, account: string, labels: object = LABELS) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name, labels },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'archaware-controller' },
    subjects: [{ kind: 'ServiceAccount', namespace: inNamespace, name: account }],
  });
  const deployment = (inNamespace: string, serviceAccountName: string, args: readonly string[] = []) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace: inNamespace, name: 'arch', labels: LABELS },
    spec: {
      replicas: 0,
      selector: { matchLabels: { a: 'b' } },
      template: {
        metadata: { labels: { a: 'b' } },
        spec: {
          serviceAccountName,
          containers: [
            {
              name: 'archaware-controller',
              image: 'example.com/archaware:1',
              command: ['node', 'dist/main.js'],
              args: [
                'run',
                '--config',
                '/etc/archaware/config.yaml',
                '--taints.effect=PreferNoSchedule',
                '--new.flag=1',
                ...args,
              ],
              env: [{ name: 'ARCHAWARE_PODS__DAEMON_SETS', value: 'ignore' }],
              volumeMounts: [{ name: 'config', mountPath: '/etc/archaware' }],
            },
          ],
          volumes: [{ name: 'config', configMap: { name: 'settings' } }],
        },
      },
    },
  });

  it('is the defaults, with a note, if no ClusterRoleBinding or no Deployment of archaware is found', async () => {
    const without = await plan();
    expect(without.code).to.equal(2);
    expect(without.stderr).to.equal(
      'configuration: defaults; no Deployment in namespace archaware runs as the service account archaware-controller\n',
    );
    const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
    const relabel = async (labels: object) => {
      for (const { metadata } of await product.list(bindings)) {
        await product.patch(`${bindings}/${text(at(metadata, 'name'))}`, { metadata: { labels } });
      }
    };
    await relabel({ 'app.kubernetes.io/name': null });
    const { stderr } = await plan();
    await relabel(LABELS);
    expect(stderr).to.equal(
      'configuration: defaults; no ClusterRoleBinding labelled app.kubernetes.io/name=archaware-controller names a service account\n',
    );
  });

  describe('of one installation', () => {
    before(() =>
      apply(
        configMap('archaware', 'settings', {
          'config.yaml':
            'taints: {key: example.com/arch}\nnodeLabels: {directory: /etc/rules}\nregistries: {caFile: /etc/none/ca.crt}\n',
        }),
        deployment('archaware', 'archaware-controller'),
      ),
    );

    it('is read from its ConfigMap, arguments and variables; flags of the command win', async () => {
      const { stdout, stderr } = await plan();
      expect(stdout).to.match(/"key": "example.com\/arch",\s+"value": "amd64",\s+"effect": "PreferNoSchedule"/);
      expect(stderr.split('\n').slice(0, 2)).to.deep.equal([
        'configuration: ConfigMap archaware/settings, of Deployment archaware/arch',
        'not taken from the cluster: nodeLabels.directory, registries.caFile; where it matters, give what this machine has with a flag',
      ]);
      expect((await plan('--taints.key', 'own')).stdout).to.match(/"key": "own"/);
    });

    it('is the same whatever namespace -n names, and whatever has the label there', async () => {
      await apply(
        namespace('tenant'),
        configMap('tenant', 'settings', { 'config.yaml': 'taints: {key: example.com/stolen}\n' }),
        deployment('tenant', 'archaware-controller'),
      );
      for (const more of [[], ['-n', 'tenant'], ['-n', 'kube-system']]) {
        const { code, stdout, stderr } = await plan(...more);
        expect(code, stderr).to.be.oneOf([0, 2]);
        expect(stdout).not.to.include('stolen');
        expect(stderr.split('\n').slice(0, 2)).to.deep.equal([
          'passed over: Deployment tenant/arch looks like archaware, but no ClusterRoleBinding of archaware names their service account',
          'configuration: ConfigMap archaware/settings, of Deployment archaware/arch',
        ]);
      }
    });

    it('is of the namespace that --installation names, for a user who may not list ClusterRoleBindings', async () => {
      product.cluster.faults.inject({ path: /\/clusterrolebindings/, status: 403, times: 2 });
      const unnamed = await plan();
      expect(unnamed.stdout).to.match(/"key": "supported-arch"/);
      expect(unnamed.stderr).to.match(
        /^configuration: defaults; that of the installation could not be read: list .*clusterrolebindings: 403 .*--installation NAMESPACE/,
      );
      const named = await plan('--installation', 'archaware');
      expect(named.stdout).to.match(/"key": "example.com\/arch"/);
    });

    it('gives way to --config', async () => {
      const { stdout, stderr } = await runInProcess(['plan', '-o', 'json', ...flags(), '--config', '-'], {
        input: 'taints: {key: typed}',
      });
      expect(stdout).to.match(/"key": "typed"/);
      expect(stderr).not.to.match(/^configuration:/m);
    });

    it('is the file of the controller inside its container', async () => {
      const controllerWords = ['run', '--taints.key', 'inside'];
      await product.cluster.createPod({ name: 'here', images: [product.image('web', ['amd64'])] });
      const { stdout, stderr } = await runInProcess(['explain', 'here', ...flags()], { controllerWords });
      expect(stdout).to.match(/taints\.key: inside/);
      expect(stderr).to.match(/^configuration: the arguments of the controller in this pod\n/);
    });

    it('is the defaults, with the missing right, if it may not be read', async () => {
      product.cluster.faults.inject({ path: /\/configmaps\/settings/, status: 403, times: 1 });
      const { stdout, stderr } = await plan();
      expect(stdout).to.match(/"key": "supported-arch"/);
      expect(stderr).to.match(/^configuration: defaults; that of the installation could not be read: .*403/m);
    });

    it('makes clean exit with 2 if it may not be read and no object records anything', async () => {
      product.cluster.faults.inject({ path: /\/configmaps\/settings/, status: 403, times: 1 });
      const { code, stderr } = await runInProcess(['clean', '--yes', ...flags()], { clock: product.clock });
      expect(code).to.equal(2);
      expect(stderr).to.match(/nothing was found, but the cluster's configuration could not be read/);
      const readable = await runInProcess(['clean', '--yes', ...flags()], { clock: product.clock });
      expect(readable.code, readable.stderr).to.equal(0);
    });

    it('sends no login of the user to a mirror that the installation names', async () => {
      const received: string[] = [];
      const mirror = createServer((request, response) => {
        received.push(request.headers.authorization ?? 'none');
        response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      });
      await new Promise<void>((resolve) => mirror.listen(0, '127.0.0.1', resolve));
      const address = mirror.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      const directory = await mkdtemp(join(tmpdir(), 'archaware-logins-'));
      const logins = join(directory, 'config.json');
      const auth = Buffer.from('jane:secret').toString('base64');
      await writeFile(logins, JSON.stringify({ auths: { 'registry.invalid': { auth } } }));
      const routes = { endpoints: [`http://127.0.0.1:${port}`], credentials: 'source', fallback: false };
      const registries = { mirrors: { 'registry.invalid': routes } };
      await apply(configMap('archaware', 'settings', { 'config.yaml': JSON.stringify({ registries }) }));
      await product.cluster.createPod({ name: 'private', images: ['registry.invalid/app:1'] });
      try {
        const own = ['--credentials.dockerConfigFiles', logins];
        const { stderr } = await runInProcess([
          'explain',
          'private',
          '--registries.timeout',
          '1s',
          ...ONCE,
          ...flags(),
          ...own,
        ]);
        expect(stderr).to.match(/^not taken from the cluster: registries\.mirrors; /m);
        expect(received, 'with logins of the user').to.deep.equal([]);
        await runInProcess([
          'explain',
          'private',
          '--registries.timeout',
          '1s',
          ...ONCE,
          '--kubeconfig',
          product.cluster.kubeconfig,
        ]);
        expect(new Set(received), 'without').to.deep.equal(new Set(['none']));
      } finally {
        mirror.close();
        await rm(directory, { recursive: true });
        await apply(configMap('archaware', 'settings', { 'config.yaml': '' }));
      }
    });

    it('has to be given where several Deployments of the namespace run as the service account', async () => {
      const second = deployment('archaware', 'archaware-controller');
      await apply({ ...second, metadata: { ...second.metadata, name: 'second' } });
      const { code, stderr } = await plan();
      await product.cluster.request('DELETE', '/apis/apps/v1/namespaces/archaware/deployments/second');
      expect(code).to.equal(3);
      expect(stderr).to.match(
        /several Deployments in archaware run as archaware: arch, second; give the configuration/,
      );
    });

    it('has service accounts of one namespace as one installation, and has to be chosen if there are several', async () => {
      await apply(binding('archaware-more', 'archaware', 'another'));
      expect((await plan()).stderr).to.match(/^configuration: ConfigMap archaware\/settings/m);
      await apply(namespace('other'), binding('other', 'other', 'arch'), deployment('other', 'arch'));
      const { code, stderr } = await plan();
      expect(code).to.equal(3);
      expect(stderr).to.match(
        /installed more than once in this cluster: in the namespaces archaware, other; choose one with --installation/,
      );
      for (const command of [['plan'], ['clean', '--dry-run']]) {
        const chosen = await runInProcess([...command, ...flags(), '--installation', 'archaware'], {
          clock: product.clock,
        });
        expect(chosen.stderr).to.match(/^configuration: ConfigMap archaware\/settings/m);
      }
    });
  });
});
