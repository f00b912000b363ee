import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { runBundle } from '../support/controller-process.ts';
import { manifestWithoutDeployment } from '../support/manifest.ts';
import { ours, taints, tolerations } from '../support/objects.ts';
import { leads } from '../support/running.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { deployment, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { add, connectAsAccount } from './support/account.ts';
import { affinity, eventuallyReleased, freshImage, GATE, gates, inSilence, ON_ARM } from './support/placed.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const ARM = { 'archaware.dev/architectures': 'arm64' };
const NOWHERE = { nodeSelector: { 'example.com/nowhere': '' } };
const BOTH = ['--placement.mode', 'both', '--bootstrap.timeout', '2s'];

describe('nothing is lost and nothing is made worse, on the real control plane', () => {
  let world: LiveWorld;

  before(async () => {
    world = await startWorld();
  });
  after(() => world?.stop());
  afterEach(() => world.stopControllers());

  it('keeps the gate while a policy of its own does not fit, says so, and releases the pod once it does', async () => {
    const controller = await runWithWebhook(world, ...BOTH);
    await world.eventually('it to lead', () => leads(controller));
    const ns = await world.namespace('misfit');
    const image = await freshImage(world, 'arm64');
    await world.create(pod(ns, 'probe', { images: [image], annotations: ARM, spec: NOWHERE }));
    await world.eventuallyTolerates(ns, 'probe', ours('arm64'));
    await world.cluster.apply(await manifestWithoutDeployment({ taints: ['another-key:NoSchedule'] }));
    await world.eventually('the policy to be in force', () => isRefused(ns, 'probe'));
    await inSilence(world, () => world.create(pod(ns, 'held', { images: [image] })));
    await world.eventuallyEvent(ns, 'WriteRefused', /archaware-guard-pods/);
    const held = await world.get('Pod', ns, 'held');
    expect([gates(held), affinity(held)]).to.deep.equal([[GATE], undefined]);
    expect(await controller.metric('archaware_writes_refused_total', { controller: 'pod' })).to.be.at.least(1);
    await world.cluster.apply(await manifestWithoutDeployment());
    const released = await eventuallyReleased(world, ns, 'held');
    expect(affinity(released)).to.deep.equal(ON_ARM);
    expect(tolerations(released)).to.deep.equal(ours('arm64'));
  });

  /** Whether the policies prevent archaware's own account from adding one more of its tolerations to a pod. */
  async function isRefused(namespace: string, name: string): Promise<boolean> {
    const account = await connectAsAccount(world);
    const toleration = { key: 'supported-arch', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };
    const patch = [add('/spec/tolerations/-', toleration)];
    const { status } = await account.request('PATCH', `${pathOf('Pod', namespace, name)}?dryRun=All`, patch);
    await account.close();
    return status === 422;
  }

  describe('a tenant that imitates the installation', () => {
    const LABELS = { 'app.kubernetes.io/name': 'archaware-controller' };
    const TENANT = 'aaa-tenant';
    const DEDICATED = { key: 'dedicated', value: 'payments', effect: 'NoSchedule' };
    let directory: string;
    let spy: Server;
    let received: string[];
    let renewing: NodeJS.Timeout;

    before(async () => {
      directory = await mkdtemp(join(tmpdir(), 'archaware-tenant-'));
      received = [];
      spy = createServer((request, response) => {
        received.push(request.headers.authorization ?? '');
        response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      });
      await new Promise<void>((resolve) => spy.listen(0, '127.0.0.1', resolve));
      const address = spy.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      const auth = Buffer.from('admin:secret').toString('base64');
      await writeFile(own('docker.json'), JSON.stringify({ auths: { 'https://index.docker.io/v1/': { auth } } }));
      await world.namespace(TENANT);
      await world.cluster.kubectl([
        ...['create', 'rolebinding', 'mallory', '-n', TENANT, '--clusterrole=edit', '--user=mallory'],
      ]);
      const plugin = {
        ...{ name: 'sh', apiVersion: 'credentialprovider.kubelet.k8s.io/v1', defaultCacheDuration: '1m' },
        ...{ matchImages: ['*.io', '*.example.com', world.registry.host], args: ['-c', `id > ${own('owned')}`] },
      };
      await asMallory({
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: TENANT } },
        data: {
          'config.yaml': JSON.stringify({
            taints: { key: 'dedicated' },
            credentials: {
              dockerConfigFiles: [own('docker.json')],
              kubelet: { config: '/etc/archaware/plugins.yaml', binDirectory: '/bin' },
            },
            registries: {
              caFile: `/../..${own('written')}`,
              mirrors: {
                'docker.io': { endpoints: [`http://127.0.0.1:${port}`], credentials: 'source', fallback: false },
              },
            },
          }),
          'plugins.yaml': JSON.stringify({
            ...{ apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers: [plugin] },
          }),
          written: 'text of the tenant',
        },
      });
      const volumeMounts = ['/etc/archaware', `/../..${directory}`].map((mountPath) => ({ name: 'c', mountPath }));
      const container = { ...{ name: 'archaware-controller', image: world.image('multi'), volumeMounts } };
      await asMallory({
        ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
        metadata: { name: 'archaware-controller', namespace: TENANT, labels: LABELS },
        spec: {
          replicas: 1,
          selector: { matchLabels: LABELS },
          template: {
            metadata: { labels: LABELS },
            spec: {
              serviceAccountName: 'archaware-controller',
              containers: [{ ...container, args: ['run', '--config', '/etc/archaware/config.yaml'] }],
              volumes: [{ name: 'c', configMap: { name: 'settings' } }],
            },
          },
        },
      });
      await asMallory(pod(TENANT, 'web-1', { images: ['docker.io/library/nginx:1'], spec: NOWHERE }));
      const lease = () => ({
        ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
        metadata: { name: 'archaware-controller', namespace: TENANT, labels: LABELS },
        spec: {
          ...{ holderIdentity: 'mallory', leaseDurationSeconds: 600 },
          renewTime: new Date().toISOString().replace('Z', '000Z'),
        },
      });
      await asMallory(lease());
      renewing = setInterval(
        () =>
          void world
            .patch('Lease', TENANT, 'archaware-controller', { spec: { renewTime: lease().spec.renewTime } })
            .catch(() => undefined),
        500,
      );
      await world.patch('Node', '', 'amd64-1', { spec: { taints: [DEDICATED] } });
    });
    after(async () => {
      clearInterval(renewing);
      spy?.close();
      await world.patch('Node', '', 'amd64-1', { spec: { taints: null } });
      await world.cluster.kubectl(['delete', 'namespace', TENANT, '--wait=false']);
      await rm(directory, { recursive: true });
    });

    const own = (name: string) => join(directory, name);
    /** Creates an object with the rights of `edit` in one namespace. */
    const asMallory = async (object: object) => {
      const { code, stderr } = await world.cluster.kubectl(['create', '-f', '-', '--as', 'mallory'], {
        input: JSON.stringify(object),
      });
      expect(code, stderr).to.equal(0);
    };
    const admin = (...args: readonly string[]) =>
      runBundle([...args, '--kubeconfig', world.cluster.kubeconfig, '--registries.timeout', '1s']);
    /** Each command does its work, and takes no notice of the tenant. */
    const goesOn = async (code: readonly number[], configuration: RegExp, ...args: readonly string[]) => {
      const finished = await admin(...args);
      const said = `${args.join(' ')}: ${finished.stdout}${finished.stderr}`;
      expect(finished.code, said).to.be.oneOf(code);
      expect(finished.stderr, said).not.to.include(`${TENANT}/archaware-controller`);
      expect(finished.stderr).to.match(configuration);
      expect([existsSync(own('owned')), existsSync(own('written')), received], said).to.deep.equal([false, false, []]);
      return finished;
    };
    const READ: readonly (readonly [code: readonly number[], ...args: string[]])[] = [
      [[0], 'explain', '-n', TENANT, 'web-1'],
      [[0, 2], 'plan', '-n', TENANT],
      [[0, 2], 'plan'],
      [[0], 'report', '-n', TENANT],
      [[2], 'status'],
    ];

    it('is used for nothing and blocks no command, also where nothing else is installed', async () => {
      for (const [code, ...args] of READ) {
        await goesOn(
          code,
          /^archaware is not installed here \(no Deployment archaware\/archaware-controller\); configuration: defaults$/m,
          ...args,
        );
      }
    });

    it('is not used beside an installation either, and clean does its work and leaves the tenant alone', async () => {
      const template = deployment('archaware', 'archaware-controller', {
        ...{ images: [world.image('multi')], replicas: 0 },
        spec: { serviceAccountName: 'archaware-controller' },
      });
      await world.create(template);
      try {
        const its = /^configuration: arguments of Deployment archaware\/archaware-controller$/m;
        for (const [code, ...args] of READ) await goesOn(code, its, ...args);
        await world.run(['--bootstrap.timeout', '2s']);
        await world.eventually('the taint', async () => taints(await world.node('arm64-1')).length > 0);
        await world.stopControllers('SIGTERM');
        for (const args of [
          ['clean', '--dry-run'],
          ['clean', '--yes', '--pods', 'keep'],
          ['clean', '--yes', '--stop', '--pods', 'keep'],
        ]) {
          await goesOn([0], its, ...args);
        }
        // The hook of the chart runs with the rights of the controller's account.
        const hook = await world.command(['clean', '--yes', '--stop', '--pods', 'keep']);
        expect(hook.code, hook.stderr).to.equal(0);
        expect(taints(await world.node('arm64-1'))).to.deep.equal([]);
        expect(listAt(await world.node('amd64-1'), 'spec', 'taints')).to.deep.include(DEDICATED);
        const untouched = await world.get('Deployment', TENANT, 'archaware-controller');
        expect(at(untouched, 'spec', 'replicas')).to.equal(1);
      } finally {
        await world.remove('Deployment', 'archaware', 'archaware-controller');
      }
    });
  });
});
