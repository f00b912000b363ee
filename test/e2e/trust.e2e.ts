import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { runBundle } from '../support/controller-process.ts';
import { manifestWithoutDeployment } from '../support/manifest.ts';
import { nameOf, ours, taints, tolerations, uidOf } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { daemonSet, deployment, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { add, connectAsAccount } from './support/account.ts';
import { affinity, freshImage, GATE, gates, inSilence, onArch, required } from './support/placed.ts';
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

  const leading = async (flags: readonly string[] = ['--bootstrap.timeout', '2s']): Promise<RunningController> => {
    const controller = await world.run(flags);
    await world.eventually('it to lead', async () => (await controller.metric('archaware_leader')) === 1);
    return controller;
  };

  it('forgets pods that are deleted within milliseconds of their creation, and serves those made again under their names', async () => {
    const controller = await leading();
    const ns = await world.namespace('reused');
    const create = (name: string) =>
      world.create(pod(ns, name, { images: [world.image('arm64')], annotations: ARM, spec: NOWHERE }));
    for (let round = 0; round < 4; round++) {
      await Promise.all(
        Array.from({ length: 40 }, async (_, index) => {
          const name = `p-${round}-${index}`;
          await create(name);
          await world.remove('Pod', ns, name);
          if (index % 2 === 0) await create(name);
        }),
      );
    }
    await world.eventually('every pod to tolerate arm64', async () => {
      const lacking = (await world.list('Pod', ns)).filter((one) => tolerations(one).join() !== ours('arm64').join());
      if (lacking.length > 0)
        throw new Error(`${lacking.length} lack it: ${lacking.slice(0, 5).map(nameOf).join(' ')}`);
      return true;
    });
    await world.eventually('no pod to be remembered that is gone', async () => {
      const placed = await controller.metric('archaware_pods', { outcome: 'placed' });
      const there = (await world.list('Pod', '')).length;
      if (placed !== undefined && placed > there) throw new Error(`${placed} placed, ${there} there`);
      return true;
    });
  });

  it('keeps the gate while an API server that has just started answers 403, and releases pods with their affinity', async () => {
    const webhook = await arrangeWebhook(world);
    await leading([...webhook.flags, ...BOTH, '--registries.timeout', '60s', '--leaderElection.leaseDuration', '30s']);
    await eventuallyTrusted(world);
    const ns = await world.namespace('restarted');
    const image = await freshImage(world, 'arm64');
    const names = Array.from({ length: 30 }, (_, index) => `p-${index}`);
    await inSilence(world, async () => {
      // Each pod has its own pull secret and so its own lookup, so that they end one after the other.
      for (const name of names) await world.create(pod(ns, name, { images: [image], pullSecrets: [`s-${name}`] }));
      await world.eventually('all to be gated', async () => {
        const gated = (await world.list('Pod', ns)).filter((one) => gates(one).includes(GATE));
        return gated.length === names.length;
      });
      await world.cluster.stopApiServer();
    });
    await world.cluster.startApiServer();
    const released = await world.eventually('all to be released', async () => {
      const pods = await world.list('Pod', ns);
      return pods.every((one) => gates(one).length === 0) && pods;
    });
    expect(released).to.have.length(names.length);
    const without = released.filter(
      (one) => JSON.stringify(affinity(one)) !== JSON.stringify({ nodeAffinity: required([onArch('arm64')]) }),
    );
    expect(without.map(nameOf)).to.deep.equal([]);
  });

  it('keeps the gate while a policy of its own does not fit, says so, and releases the pod once it does', async () => {
    const webhook = await arrangeWebhook(world);
    const controller = await leading([...webhook.flags, ...BOTH]);
    await eventuallyTrusted(world);
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
    const released = await world.eventually('the pod to be released', async () => {
      const found = await world.get('Pod', ns, 'held');
      return gates(found).length === 0 && found;
    });
    expect(affinity(released)).to.deep.equal({ nodeAffinity: required([onArch('arm64')]) });
    expect(tolerations(released)).to.deep.equal(ours('arm64'));
  });

  it('writes nothing to what is placed and asks no registry about it, whichever process leads and wherever the registry is', async () => {
    const first = await leading();
    const ns = await world.namespace('placed');
    const image = await freshImage(world, 'arm64');
    await world.create(
      daemonSet(ns, 'agent', { images: [image] }),
      pod(ns, 'bound', { images: [image] }),
      pod(ns, 'waits', { images: [image], spec: NOWHERE }),
    );
    await world.eventuallyTolerates(ns, 'waits', ours('arm64'));
    await world.eventuallyTolerates(ns, 'bound', ours('arm64'));
    await world.eventually('the DaemonSet to be placed', async () => {
      const found = await world.get('DaemonSet', ns, 'agent');
      return (
        tolerations(at(found, 'spec', 'template')).join() === ours('arm64').join() &&
        at(found, 'status', 'observedGeneration') === at(found, 'metadata', 'generation')
      );
    });
    await first.stop('SIGKILL');
    const before = await world.requestCount();
    const uids = (await world.list('Pod', ns)).map(uidOf).sort();
    const tag = String(image.split(':').at(-1));
    const asked = async () =>
      (await world.registry.requests()).filter(({ path }) => path.endsWith(`/manifests/${tag}`)).length;
    const askedBefore = await asked();
    await inSilence(world, async () => {
      const second = await leading(['--images.fallbackAfter', '1s', '--registries.timeout', '1s']);
      await world.eventually('its first pass', async () => {
        const outcomes = await second.metric('archaware_pods', { outcome: 'placed' });
        return outcomes !== undefined && outcomes >= 2;
      });
      // Another pod, made now, is opened after its time: so much later nothing else was written either.
      await world.create(pod(ns, 'later', { images: [`${image}-not-asked-before`], spec: NOWHERE }));
      await world.eventuallyTolerates(ns, 'later', ours('amd64', 'arm64'));
    });
    const written = (await world.writesSince(before)).filter((line) => line.includes(`/namespaces/${ns}/`));
    expect(written.filter((line) => !line.includes('/pods/later'))).to.deep.equal([]);
    expect(
      (await world.list('Pod', ns))
        .filter((one) => nameOf(one) !== 'later')
        .map(uidOf)
        .sort(),
    ).to.deep.equal(uids);
    expect(await asked()).to.equal(askedBefore);
  });

  it('rolls one DaemonSet at a time, and taints no node before all of them tolerate, however long that takes', async () => {
    const ns = await world.namespace('rolling');
    await world.command(['clean', '--yes', '--pods', 'keep']);
    const names = ['ds-1', 'ds-2', 'ds-3', 'ds-4'];
    const annotations = { 'archaware.dev/architectures': 'amd64,arm64' };
    for (const name of names) {
      await world.create(
        daemonSet(ns, name, { images: [world.image('multi')], annotations, workload: { minReadySeconds: 3 } }),
      );
    }
    const isRolled = (found: unknown) =>
      at(found, 'status', 'observedGeneration') === at(found, 'metadata', 'generation') &&
      at(found, 'status', 'numberAvailable') === 2 &&
      at(found, 'status', 'updatedNumberScheduled') === 2;
    await world.eventually('all to run', async () => (await world.list('DaemonSet', ns)).every(isRolled));
    await leading(['--bootstrap.timeout', '1s']);
    const most = { rolling: 0, early: '' };
    await world.eventually('all nodes to be tainted', async () => {
      const sets = await world.list('DaemonSet', ns);
      const lacking = sets.filter((found) => tolerations(at(found, 'spec', 'template')).length < 2).map(nameOf);
      const rolling = sets.filter(
        (found) => tolerations(at(found, 'spec', 'template')).length === 2 && !isRolled(found),
      );
      most.rolling = Math.max(most.rolling, rolling.length);
      const nodes = await world.list('Node', '');
      const isTainted = (node: unknown) => taints(node).length > 0;
      if (lacking.length > 0 && nodes.some(isTainted)) most.early ||= lacking.join(' ');
      return nodes.every(isTainted);
    });
    expect(most).to.deep.equal({ rolling: 1, early: '' });
    expect(listAt(await world.node('amd64-1'), 'spec', 'taints')).to.not.have.length(0);
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
        await leading();
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
