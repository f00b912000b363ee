import { expect } from 'chai';
import type { EmbeddedOptions } from '../simulator/embedded-cluster.ts';
import { at, type JsonObject, objects, text } from '../simulator/json.ts';
import { PODS, type Product, startProduct, tolerated, workload } from '../support/product.ts';

const EVICT = ['--pods.onWrongNode', 'evict'];
const METRIC = 'archaware_wrong_node_pods_total';

/** The status of a container that crashes, with the reason only in its log (the default terminationMessagePolicy). */
const CRASHES = {
  ...{ ready: false, started: false, restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } } },
  lastState: { terminated: { exitCode: 255, reason: 'Error' } },
};
/** The same with terminationMessagePolicy: FallbackToLogsOnError. */
const SAYS_FORMAT = {
  ...CRASHES,
  lastState: { terminated: { exitCode: 255, reason: 'Error', message: 'exec /app: exec format error' } },
};
const CANNOT_BE_PULLED = {
  ...{ ready: false, started: false, imageID: '' },
  state: {
    waiting: {
      reason: 'ErrImagePull',
      message:
        'rpc error: code = NotFound desc = get image config descriptor: no match for platform in manifest sha256:41c7: not found',
    },
  },
};

describe('run, with pods on wrong nodes', () => {
  let product: Product;
  let amd: string;
  /** The digest of `amd`. */
  let digest: string;
  async function start(nodes: readonly string[] = ['amd64', 'arm64'], cluster: EmbeddedOptions = {}): Promise<void> {
    product = await startProduct({ nodes, cluster });
    digest = product.registry.put('app', '1', ['amd64']);
    amd = `${product.registry.host}/app:1`;
  }
  afterEach(() => product.stop());

  const podsOf = async (app: string) =>
    (await product.list(PODS)).filter((pod) => at(pod, 'metadata', 'labels', 'app') === app);
  const nodesOf = async (app: string) => (await podsOf(app)).map((pod) => text(at(pod, 'spec', 'nodeName')));
  const uidsOf = async (app: string) => (await podsOf(app)).map((pod) => text(at(pod, 'metadata', 'uid'))).sort();
  const evictions = () => product.written().filter((line) => line.endsWith('/eviction'));
  const deploy = (options: Parameters<typeof workload>[3] = {}) =>
    product.cluster.apply(workload('Deployment', 'web', [amd], options));
  const eventuallyRuns = (what: string, find: () => Promise<readonly JsonObject[]>, count = 1) =>
    product.eventually(`${what} to run`, async () => {
      const found = await find();
      return found.length === count && found.every((pod) => at(pod, 'status', 'phase') === 'Running') && found;
    });
  /** Sets the status of a pod's containers, with the digest of the pulled image. */
  async function set(pod: JsonObject, more: JsonObject = CRASHES, pulled = digest): Promise<void> {
    const containerStatuses = objects(at(pod, 'status', 'containerStatuses')).map((status) => ({
      ...status,
      imageID: `${text(status.image).replace(/:[^:]*$/, '')}@${pulled}`,
      ...more,
    }));
    await product.patch(`${PODS}/${text(at(pod, 'metadata', 'name'))}/status`, { status: { containerStatuses } });
  }
  async function setAll(app: string, more: JsonObject = CRASHES, pulled = digest): Promise<void> {
    for (const pod of await podsOf(app)) await set(pod, more, pulled);
  }
  /** A bare pod that crashes on its node, after the controller has placed it (`isServed`). */
  async function crash(name: string, node: string, more: JsonObject = CRASHES, isServed = true): Promise<void> {
    await product.cluster.createPod({ name, images: [amd], spec: { nodeName: node } });
    const [pod] = await eventuallyRuns(name, async () => [await product.get(`${PODS}/${name}`)]);
    if (isServed) {
      await product.eventually(`${name} to be placed`, async () => {
        const { spec } = await product.get(`${PODS}/${name}`);
        return tolerated(spec).length > 0;
      });
    }
    if (pod !== undefined) await set(pod, more);
  }
  it('writes an Event for a pod that crashes on a node whose platform its image lacks, and counts it', async () => {
    await start();
    const controller = await product.run();
    await crash('bare', 'arm64-1');
    const note = await product.eventuallyEvent('default', 'WrongNode', /container .* fails on node arm64-1 \(arm64\)/);
    expect(note).to.match(
      /not evicted: pods\.onWrongNode is warn; pulled .*app@sha256:.* \(linux\/amd64\); .*app:1 \(linux\/amd64\)/,
    );
    expect(await controller.metric(METRIC, { reason: 'platforms', action: 'warned' })).to.equal(1);
    // A pod that crashes on a right node has no Event.
    await crash('right', 'amd64-1');
    await crash('another', 'arm64-1', CANNOT_BE_PULLED);
    await product.eventuallyEvent('default', 'WrongNode', /no match for platform in manifest; not evicted/);
    expect(await controller.metric(METRIC)).to.equal(2);
  });

  it('evicts a pod that was placed before its image was known', async () => {
    await start(['arm64']);
    await product.cluster.apply(workload('Deployment', 'web', [`${product.registry.host}/late:1`]));
    const first = await product.run(['--images.fallbackAfter', '0s']);
    await product.eventuallyEvent('default', 'ImageUnresolvable', /late/);
    await eventuallyRuns('web', () => podsOf('web'));
    await first.stop();
    await setAll('web', CRASHES, product.registry.put('late', '1', ['amd64']));
    await product.cluster.createNode({ name: 'amd64-1', architecture: 'amd64' });
    await product.run(EVICT);
    await product.eventually('it to be moved', async () => (await nodesOf('web')).join() === 'amd64-1');
  });

  it('leaves pods that run where they are when their tag moves, also after a restart', async () => {
    await start(['amd64']);
    await deploy({ spec: { replicas: 2 }, template: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } } });
    await eventuallyRuns('web', () => podsOf('web'), 2);
    await product.cluster.createNode({ name: 'arm64-1', architecture: 'arm64' });
    const uids = await uidsOf('web');
    product.registry.put('app', '1', ['arm64']);
    const controller = await product.run(EVICT);
    await product.eventuallyTainted();
    await crash('marker', 'amd64-1', SAYS_FORMAT);
    await product.eventuallyEvent('default', 'WrongNode', /not evicted/);
    expect(await uidsOf('web')).to.deep.equal(uids);
    expect(evictions()).to.deep.equal([]);
    // Only the marker pod counts: its image was pulled for amd64.
    expect(await controller.metric(METRIC)).to.equal(1);
  });

  it("only writes Events for a Job's pod, and for a DaemonSet's pod that would come back", async () => {
    // Nothing ends the Job's pod. Nothing makes the node ready either, so the pod has to name its node.
    await start(['arm64'], { kubelet: false });
    const containers = [{ name: 'c', image: amd }];
    const template = { spec: { containers, restartPolicy: 'Never', nodeName: 'arm64-1' } };
    const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'once', namespace: 'default' } };
    await product.cluster.apply(JSON.stringify({ ...job, spec: { template } }));
    const everywhere = { template: { tolerations: [{ operator: 'Exists' }] } };
    await product.cluster.apply(workload('DaemonSet', 'agent', [amd], everywhere));
    const pods = await product.eventually('both to be bound', async () => {
      const found = await product.list(PODS);
      return found.length === 2 && found.every((pod) => at(pod, 'spec', 'nodeName') === 'arm64-1') && found;
    });
    for (const pod of pods) {
      const [{ name = '' } = {}] = objects(at(pod, 'spec', 'containers'));
      const containerStatuses = [{ name, image: amd, ...CANNOT_BE_PULLED }];
      await product.patch(`${PODS}/${text(at(pod, 'metadata', 'name'))}/status`, { status: { containerStatuses } });
    }
    await product.cluster.createNode({ name: 'amd64-1', architecture: 'amd64' });
    await product.run(EVICT);
    await product.eventuallyEvent('default', 'WrongNode', /its Job would count it as failed/);
    await product.eventuallyEvent('default', 'WrongNode', /its DaemonSet would create another one here/);
    expect(evictions()).to.deep.equal([]);
  });

  it('lists nothing in plan', async () => {
    await start();
    await crash('bare', 'arm64-1', CRASHES, false);
    const { stdout, stderr } = await product.command(['plan', '--output', 'json', ...EVICT]);
    expect(Object.keys(JSON.parse(stdout)), stderr).to.deep.equal([
      'changes',
      'waiting',
      'held',
      'unresolved',
      'ignored',
      'workloads',
      'refused',
    ]);
    expect(product.cluster.writes()).to.deep.equal([]);
  });
});
