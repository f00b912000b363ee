import { expect } from 'chai';
import { at } from '../../../hack/cluster/json.ts';
import { isGoing, nameOf, ours, runs, scheduledOn, tolerations, uidOf } from '../../support/objects.ts';
import type { RunningController } from '../../support/running.ts';
import { daemonSet, deployment, type KubernetesObject, pod, statefulSet } from '../../support/workloads.ts';
import type { World } from '../../support/world.ts';
import { crashing, setContainers } from './container-status.ts';
import type { Start } from './context.ts';

const METRIC = 'archaware_wrong_node_pods_total';
const EVERY_ARCHITECTURE = [{ key: 'supported-arch', operator: 'Exists' }];
/** containerd 2.4, an index without the node's platform. */
const CANNOT_BE_PULLED = {
  ...{ ready: false, started: false, imageID: '' },
  state: {
    waiting: {
      reason: 'ImagePullBackOff',
      message:
        'Back-off pulling image "x:1": ErrImagePull: rpc error: code = NotFound desc = get image config descriptor: no match for platform in manifest sha256:41c7: not found',
    },
  },
};
const budget = (namespace: string, app: string): KubernetesObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: app, namespace },
  spec: { maxUnavailable: 0, selector: { matchLabels: { app } } },
});

export function describeWrongNode(start: Start): void {
  describe('pods on wrong nodes', () => {
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
    const set = (found: unknown, status?: object, pulled?: string) =>
      setContainers(world, namespace, found, status, pulled);
    const counted = (reason: string, action: string) => controller.metric(METRIC, { reason, action });

    // What was there before us: nothing keeps pods off a node, and that of the right architecture is cordoned. Everything
    // that was pulled there for amd64 crashes, but for what is called `runs`.
    before(async () => {
      world = await start();
      const amd = [world.image('amd64')];
      await world.patch('Node', '', 'amd64-1', { spec: { unschedulable: true } });
      await world.namespace(namespace);
      const workloads = [
        deployment(namespace, 'moves', { images: amd }),
        statefulSet(namespace, 'moves-too', { images: amd }),
        deployment(namespace, 'guarded', { images: amd }),
        deployment(namespace, 'unpullable', { images: amd }),
        deployment(namespace, 'runs', { images: amd }),
        deployment(namespace, 'selective', {
          images: amd,
          spec: { nodeSelector: { 'kubernetes.io/hostname': 'arm64-1' } },
        }),
        deployment(namespace, 'tolerant', { images: amd, tolerations: EVERY_ARCHITECTURE }),
        deployment(namespace, 'pinned', { images: amd, spec: { nodeName: 'arm64-1' } }),
        deployment(namespace, 'ignored', { images: amd, labels: { 'archaware.dev/ignore': 'true' } }),
      ];
      await world.create(budget(namespace, 'guarded'), ...workloads);
      for (const app of workloads.map(nameOf)) {
        const found = await onNode(app, 'arm64-1');
        uids.set(app, uidOf(found));
        if (app !== 'runs') await set(found, app === 'unpullable' ? CANNOT_BE_PULLED : undefined);
      }
      await world.patch('Node', '', 'amd64-1', { spec: { unschedulable: null } });
      controller = await world.run(['--pods.onWrongNode', 'evict']);
    });
    after(() => world?.stop());

    it('are evicted one after the other, and come back on the right node', async () => {
      const moved = await onNode('moves', 'amd64-1');
      expect(tolerations(moved)).to.deep.equal(ours('amd64'));
      await onNode('moves-too', 'amd64-1');
      await onNode('unpullable', 'amd64-1');
      await world.eventuallyEvent(namespace, 'WrongNode', /no match for platform in manifest; evicted; /);
      const note = await world.eventuallyEvent(
        namespace,
        'WrongNode',
        /for which its image has no platform; evicted; /,
      );
      expect(note)
        .to.include('node arm64-1 (arm64)')
        .and.to.include(`${world.image('amd64')} (linux/amd64)`);
      expect(await counted('platforms', 'evicted')).to.equal(3);
    });

    it('stay while a PodDisruptionBudget does not let them go, and go then', async () => {
      await world.eventuallyEvent(namespace, 'WrongNode', /its eviction is blocked .*a PodDisruptionBudget/);
      expect(uidOf(await onNode('guarded', 'arm64-1'))).to.equal(uids.get('guarded'));
      await world.remove('PodDisruptionBudget', namespace, 'guarded');
      await onNode('guarded', 'amd64-1');
      expect(await counted('platforms', 'blocked')).to.equal(1);
    });

    it('stay where they would come back, or fit no other node: their tolerations, their nodeName, their nodeSelector', async () => {
      await world.eventuallyEvent(
        namespace,
        'WrongNode',
        /not evicted: its own tolerations let it onto nodes of arm64/,
      );
      await world.eventuallyEvent(namespace, 'WrongNode', /not evicted: its template names the node/);
      await world.eventuallyEvent(namespace, 'WrongNode', /not evicted: no node of amd64 would take another one/);
      for (const app of ['tolerant', 'pinned', 'selective'])
        expect(uidOf(await onNode(app, 'arm64-1')), app).to.equal(uids.get(app));
    });

    it('have only an Event where nothing brings them back, and where a DaemonSet would do so on the same node', async () => {
      await world.create(
        pod(namespace, 'bare', { images: [world.image('amd64')], spec: { nodeName: 'arm64-1' } }),
        daemonSet(namespace, 'agent', { images: [world.image('amd64')], tolerations: EVERY_ARCHITECTURE }),
      );
      await set(await world.eventuallyRuns(namespace, 'bare'));
      for (const found of await world.eventuallyAllRun(namespace, 'agent', 2))
        if (scheduledOn(found) === 'arm64-1') await set(found);
      await world.eventuallyEvent(namespace, 'WrongNode', /not evicted: bare pod/);
      await world.eventuallyEvent(namespace, 'WrongNode', /not evicted: its DaemonSet would create another one here/);
    });

    it('are left alone, also by Events, where they are ignored, and where their containers run', async () => {
      for (const app of ['ignored', 'runs']) expect(uidOf(await onNode(app, 'arm64-1'))).to.equal(uids.get(app));
      const events = await world.list('Event', namespace);
      const regarding = events.filter((event) => at(event, 'reason') === 'WrongNode');
      for (const app of ['ignored', 'runs'])
        expect(regarding.map((event) => at(event, 'regarding', 'uid'))).not.to.include(uids.get(app));
    });

    it('show by an exec format error in their status, where their image claims to run there', async () => {
      await world.create(deployment(namespace, 'mislabelled', { images: [world.image('multi')] }));
      const found = await world.eventually('mislabelled to run', () => only('mislabelled'));
      await set(found, crashing('exec /app: exec format error', 255), 'multi');
      await world.eventuallyEvent(
        namespace,
        'WrongNode',
        /container main-0 died with an exec format error on node .*; not evicted: its image \S+@sha256:\S+ claims to run on .*images\.overrides \{pattern: /,
      );
      expect(await counted('exec-format-error', 'warned')).to.equal(1);
      expect(await counted('exec-format-error', 'evicted')).to.equal(0);
    });
  });
}
