import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import type { RunningController } from '../support/controller-process.ts';
import { isGoing, nameOf, ours, runs, scheduledOn, tolerations, uidOf } from './support/objects.ts';
import { daemonSet, deployment, type KubernetesObject, pod, statefulSet } from './support/workloads.ts';
import { pathOf, startWorld, type World } from './support/world.ts';

const METRIC = 'archaware_wrong_node_pods_total';
const EVERY_ARCHITECTURE = [{ key: 'supported-arch', operator: 'Exists' }];
const budget = (namespace: string, app: string): KubernetesObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: app, namespace },
  spec: { maxUnavailable: 0, selector: { matchLabels: { app } } },
});

describe('pods on wrong nodes, on the real control plane', () => {
  const namespace = 'wrong';
  let world: World;
  let controller: RunningController;
  /** The pods as they were, by workload. */
  const uids = new Map<string, string>();

  const only = async (app: string) => {
    const [found, ...others] = await world.pods(namespace, app);
    return others.length === 0 && found !== undefined && !isGoing(found) && runs(found) && found;
  };
  const onNode = (app: string, node: string) =>
    world.eventually(`${app} to run on ${node}`, async () => {
      const found = await only(app);
      return found && scheduledOn(found) === node && found;
    });
  const counted = (reason: string, action: string) => controller.metric(METRIC, { reason, action });

  // What was there before us: nothing keeps pods off a node, and that of the right architecture is cordoned.
  before(async () => {
    world = await startWorld();
    const amd = [world.image('amd64')];
    await world.cluster.kubectl(['cordon', 'amd64-1']);
    await world.namespace(namespace);
    await world.create(
      deployment(namespace, 'moves', { images: amd }),
      statefulSet(namespace, 'moves-too', { images: amd }),
      budget(namespace, 'guarded'),
      deployment(namespace, 'guarded', { images: amd }),
      deployment(namespace, 'tolerant', { images: amd, tolerations: EVERY_ARCHITECTURE }),
      deployment(namespace, 'pinned', { images: amd, spec: { nodeName: 'arm64-1' } }),
      deployment(namespace, 'ignored', { images: amd, labels: { 'archaware.dev/ignore': 'true' } }),
    );
    for (const app of ['moves', 'moves-too', 'guarded', 'tolerant', 'pinned', 'ignored']) {
      uids.set(app, uidOf(await onNode(app, 'arm64-1')));
    }
    await world.cluster.kubectl(['uncordon', 'amd64-1']);
    controller = await world.run(['--pods.onWrongNode', 'evict']);
  });
  after(() => world?.stop());

  it('are evicted one after the other, and come back on the right node', async () => {
    const moved = await onNode('moves', 'amd64-1');
    expect(tolerations(moved)).to.deep.equal(ours('amd64'));
    await onNode('moves-too', 'amd64-1');
    const note = await world.eventuallyTold(namespace, 'WrongNode', /which does not run all of its images; evicted; /);
    expect(note)
      .to.include('node arm64-1 (arm64)')
      .and.to.include(`${world.image('amd64')} (linux/amd64)`);
    expect(await counted('platforms', 'evicted')).to.equal(2);
  });

  it('stay while a PodDisruptionBudget does not let them go, and go then', async () => {
    await world.eventuallyTold(namespace, 'WrongNode', /its eviction is blocked .*a PodDisruptionBudget/);
    expect(uidOf(await onNode('guarded', 'arm64-1'))).to.equal(uids.get('guarded'));
    await world.remove('PodDisruptionBudget', namespace, 'guarded');
    await onNode('guarded', 'amd64-1');
    expect(await counted('platforms', 'blocked')).to.equal(1);
  });

  it('stay where they would come back: they tolerate every architecture, or their template names the node', async () => {
    await world.eventuallyTold(namespace, 'WrongNode', /not evicted: its own tolerations let it onto nodes of arm64/);
    await world.eventuallyTold(namespace, 'WrongNode', /not evicted: its template names the node/);
    for (const app of ['tolerant', 'pinned']) {
      expect(uidOf(await onNode(app, 'arm64-1')), app).to.equal(uids.get(app));
    }
  });

  it('are only told of where nobody brings them back, and where a DaemonSet would do so on the same node', async () => {
    await world.create(
      pod(namespace, 'bare', { images: [world.image('amd64')], spec: { nodeName: 'arm64-1' } }),
      daemonSet(namespace, 'agent', { images: [world.image('amd64')], tolerations: EVERY_ARCHITECTURE }),
    );
    await world.eventuallyTold(namespace, 'WrongNode', /not evicted: bare pod/);
    await world.eventuallyTold(namespace, 'WrongNode', /not evicted: its DaemonSet would make another one here/);
  });

  it('are left alone, also by Events, where they are ignored', async () => {
    expect(uidOf(await onNode('ignored', 'arm64-1'))).to.equal(uids.get('ignored'));
    const events = await world.list('Event', namespace);
    const regarding = events.filter((event) => at(event, 'reason') === 'WrongNode');
    expect(regarding.map((event) => at(event, 'regarding', 'uid'))).not.to.include(uids.get('ignored'));
  });

  it('show by an exec format error in their status, where their image claims to run there', async () => {
    await world.create(deployment(namespace, 'liar', { images: [world.image('multi')] }));
    const found = await world.eventually('liar to run', () => only('liar'));
    const containerStatuses = listAt(found, 'status', 'containerStatuses').map((status) => ({
      ...(typeof status === 'object' ? status : {}),
      ...{ ready: false, started: false, restartCount: 1, state: { waiting: { reason: 'CrashLoopBackOff' } } },
      lastState: { terminated: { exitCode: 255, reason: 'Error', message: 'exec /app: exec format error' } },
    }));
    const path = `${pathOf('Pod', namespace, nameOf(found))}/status`;
    expectSuccess('its status', await world.cluster.request('PATCH', path, { status: { containerStatuses } }));
    await world.eventuallyTold(
      namespace,
      'WrongNode',
      /container main-0 died with an exec format error on node .*; not evicted: its images say that they run on/,
    );
    expect(await counted('exec-format-error', 'warned')).to.equal(1);
    expect(await counted('exec-format-error', 'evicted')).to.equal(0);
  });
});
