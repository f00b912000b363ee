import { expect } from 'chai';
import { runInProcess } from '../support/in-process.ts';
import { type Product, startProduct } from '../support/product.ts';

describe("the cluster's own configuration", () => {
  let product: Product;
  before(async () => {
    product = await startProduct();
  });
  after(() => product.stop());

  const flags = () => ['--kubeconfig', product.cluster.kubeconfig, '--registries.insecure', product.registry.host];
  const plan = async (...more: readonly string[]) => {
    const { code, stdout, stderr } = await runInProcess(['plan', '-o', 'json', ...flags(), ...more]);
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
  const deployment = (namespace: string, options: { readonly env?: object[]; readonly volumes?: object[] } = {}) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace, name: 'arch', labels: { 'app.kubernetes.io/name': 'archaware-controller' } },
    spec: {
      replicas: 0,
      selector: { matchLabels: { a: 'b' } },
      template: {
        metadata: { labels: { a: 'b' } },
        spec: {
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
              ],
              env: [{ name: 'ARCHAWARE_WORKERS', value: '3' }, ...(options.env ?? [])],
              volumeMounts: [
                { name: 'config', mountPath: '/etc/archaware' },
                { name: 'rules', mountPath: '/etc/rules' },
              ],
            },
          ],
          volumes: [
            { name: 'config', configMap: { name: 'settings' } },
            { name: 'rules', configMap: { name: 'rules' } },
          ],
        },
      },
    },
  });

  it('is the defaults, with a note, if no Deployment of archaware is found', async () => {
    const { code, stderr } = await plan();
    expect(code).to.equal(2);
    expect(stderr).to.equal(
      'configuration: defaults; no Deployment labelled app.kubernetes.io/name=archaware-controller found\n',
    );
  });

  describe('of one Deployment', () => {
    before(() =>
      apply(
        configMap('default', 'settings', {
          'config.yaml':
            'taints: {key: example.com/arch}\nnodeLabels: {directory: /etc/rules}\nregistries: {caFile: /etc/none/ca.crt}\n',
        }),
        configMap('default', 'rules', { 'labels.txt': 'tier=web\n' }),
        deployment('default'),
      ),
    );

    it('is read from its ConfigMap, arguments and variables; flags of the command win', async () => {
      const { stdout, stderr } = await plan();
      expect(stdout).to.match(/"key": "example.com\/arch",\s+"value": "amd64",\s+"effect": "PreferNoSchedule"/);
      expect(stderr).to.match(/^configuration: ConfigMap default\/settings, of Deployment default\/arch\n/);
      expect(stderr).to.match(/^registries.caFile: \/etc\/none\/ca.crt is in the container of the controller/m);
      expect((await plan('--taints.key', 'own')).stdout).to.match(/"key": "own"/);
    });

    it('is found in every namespace, also if -n names the namespace of an application', async () => {
      const { stderr } = await plan('-n', 'kube-system');
      expect(stderr).to.match(/^configuration: ConfigMap default\/settings, of Deployment default\/arch\n/);
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
      expect(stderr).to.match(/^configuration: defaults; the cluster's could not be read: .*403/);
    });

    it('makes clean exit with 2 if it may not be read and no object records anything', async () => {
      product.cluster.faults.inject({ path: /\/configmaps\/settings/, status: 403, times: 1 });
      const { code, stderr } = await runInProcess(['clean', '--yes', ...flags()], { clock: product.clock });
      expect(code).to.equal(2);
      expect(stderr).to.match(/nothing was found, but the cluster's configuration could not be read/);
      const readable = await runInProcess(['clean', '--yes', ...flags()], { clock: product.clock });
      expect(readable.code, readable.stderr).to.equal(0);
    });

    it('has to be chosen if there are several', async () => {
      await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } }, deployment('other'));
      const { code, stderr } = await plan();
      expect(code).to.equal(3);
      expect(stderr).to.match(
        /runs more than once in this cluster: Deployments default\/arch, other\/arch; choose one/,
      );
      const chosen = await runInProcess(['clean', '--dry-run', ...flags(), '-n', 'default']);
      expect(chosen.stderr).to.match(/^configuration: ConfigMap default\/settings/);
    });
  });
});
