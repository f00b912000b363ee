import { expect } from 'chai';
import type { EmbeddedOptions } from '../support/cluster/embedded-cluster.ts';
import { at, objects, text } from '../support/cluster/json.ts';
import { PODS, type Product, startProduct, workload } from '../support/product.ts';

const EVICT = ['--pods.onWrongNode', 'evict'];
const METRIC = 'archaware_wrong_node_pods_total';

describe('run, with pods on wrong nodes', () => {
  let product: Product;
  let amd: string;
  async function start(nodes: readonly string[] = ['amd64', 'arm64'], cluster: EmbeddedOptions = {}): Promise<void> {
    product = await startProduct({ nodes, cluster });
    amd = product.image('app', ['amd64']);
  }
  afterEach(() => product.stop());

  const podsOf = async (app: string) =>
    (await product.list(PODS)).filter((pod) => at(pod, 'metadata', 'labels', 'app') === app);
  const nodesOf = async (app: string) => (await podsOf(app)).map((pod) => text(at(pod, 'spec', 'nodeName')));
  const evictions = () => product.written().filter((line) => line.endsWith('/eviction'));
  const deploy = (options: Parameters<typeof workload>[3] = {}) =>
    product.cluster.apply(workload('Deployment', 'web', [amd], options));
  /** A Deployment for amd64 that runs on the only node, which is of arm64, and a node of amd64 that joins then. */
  async function deployOnWrongNode(options: Parameters<typeof workload>[3] = {}): Promise<void> {
    await deploy(options);
    await product.eventually('it to be bound', async () => (await nodesOf('web')).join() === 'arm64-1');
    await product.cluster.createNode({ name: 'amd64-1', architecture: 'amd64' });
  }

  it('tells of a pod that names its node, and counts it', async () => {
    await start();
    const controller = await product.run();
    await product.cluster.createPod({ name: 'bare', images: [amd], spec: { nodeName: 'arm64-1' } });
    const note = await product.eventuallyTold('WrongNode', /bound to node arm64-1 \(arm64\)/);
    expect(note).to.match(/not evicted: pods\.onWrongNode is warn; .*app:1 \(linux\/amd64\)/);
    expect(await controller.metric(METRIC, { reason: 'platforms', action: 'warned' })).to.equal(1);
    await product.cluster.createPod({ name: 'right', images: [amd], spec: { nodeName: 'amd64-1' } });
    await product.eventuallyTolerates('right', 'amd64');
    expect(await controller.metric(METRIC)).to.equal(1);
  });

  it('moves a pod with pods.onWrongNode: evict, and it comes back on the right node', async () => {
    await start(['arm64']);
    await deployOnWrongNode();
    const controller = await product.run(EVICT);
    await product.eventually('it to be moved', async () => (await nodesOf('web')).join() === 'amd64-1');
    await product.eventuallyTold('WrongNode', /arm64-1 .*; evicted; /);
    expect(evictions()).to.have.lengthOf(1);
    expect(await controller.metric(METRIC, { reason: 'platforms', action: 'evicted' })).to.equal(1);
  });

  it('moves a pod that was placed before anything was known of its image', async () => {
    await start(['arm64']);
    await product.cluster.apply(workload('Deployment', 'web', [`${product.registry.host}/late:1`]));
    const first = await product.run(['--images.fallbackAfter', '0s']);
    await product.eventuallyTold('OpenPlacement', /late/);
    await product.eventually('it to be bound', async () => (await nodesOf('web')).join() === 'arm64-1');
    await first.stop();
    product.image('late', ['amd64']);
    await product.cluster.createNode({ name: 'amd64-1', architecture: 'amd64' });
    await product.run(EVICT);
    await product.eventually('it to be moved', async () => (await nodesOf('web')).join() === 'amd64-1');
  });

  const staying: [given: string, template: Record<string, unknown>, why: RegExp][] = [
    [
      'tolerates everything',
      { tolerations: [{ operator: 'Exists' }] },
      /its own tolerations let it onto nodes of arm64/,
    ],
    ['names its node', { nodeName: 'arm64-1' }, /its template names the node/],
  ];
  for (const [given, template, why] of staying) {
    it(`leaves a pod where it is whose template ${given}: it would come back there`, async () => {
      await start(['arm64']);
      await deployOnWrongNode({ template });
      const uids = (await podsOf('web')).map((pod) => at(pod, 'metadata', 'uid'));
      await product.run(EVICT);
      await product.eventuallyTold('WrongNode', why);
      expect((await podsOf('web')).map((pod) => at(pod, 'metadata', 'uid'))).to.deep.equal(uids);
      expect(evictions()).to.deep.equal([]);
    });
  }

  it("only tells of a Job's pod, and of a DaemonSet's", async () => {
    // Nobody ends the Job's pod; nobody makes the node ready either, so that it has to be named.
    await start(['arm64'], { kubelet: false });
    const containers = [{ name: 'c', image: amd }];
    const template = { spec: { containers, restartPolicy: 'Never', nodeName: 'arm64-1' } };
    const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'once', namespace: 'default' } };
    await product.cluster.apply(JSON.stringify({ ...job, spec: { template } }));
    const everywhere = { template: { tolerations: [{ operator: 'Exists' }] } };
    await product.cluster.apply(workload('DaemonSet', 'agent', [product.image('agent', ['amd64'])], everywhere));
    await product.eventually('both to be bound', async () => {
      const pods = await product.list(PODS);
      return pods.length === 2 && pods.every((pod) => at(pod, 'spec', 'nodeName') === 'arm64-1');
    });
    await product.cluster.createNode({ name: 'amd64-1', architecture: 'amd64' });
    await product.run(EVICT);
    await product.eventuallyTold('WrongNode', /its Job would count it as failed/);
    await product.eventuallyTold('WrongNode', /its DaemonSet would make another one here.*agent:1/);
    expect(evictions()).to.deep.equal([]);
  });

  it('leaves a pod where it is while its PodDisruptionBudget says so, and tells of that', async () => {
    await start(['arm64']);
    const selector = { matchLabels: { app: 'web' } };
    const metadata = { name: 'web', namespace: 'default' };
    const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata };
    await product.cluster.apply(JSON.stringify({ ...budget, spec: { maxUnavailable: 0, selector } }));
    await deployOnWrongNode();
    const controller = await product.run(EVICT);
    await product.eventuallyTold('WrongNode', /its eviction is blocked .*PodDisruptionBudget/);
    expect(await controller.metric(METRIC, { action: 'blocked' })).to.equal(1);
    expect(await nodesOf('web')).to.deep.equal(['arm64-1']);
  });

  it('tells of a container that died with an exec format error where its image claims to run', async () => {
    await start();
    const controller = await product.run(EVICT);
    await deploy({ template: { containers: [{ name: 'main', image: product.image('liar', ['amd64', 'arm64']) }] } });
    const pod = await product.eventually('it to run', async () =>
      (await podsOf('web')).find((found) => at(found, 'status', 'phase') === 'Running'),
    );
    const containerStatuses = objects(at(pod, 'status', 'containerStatuses')).map((status) => ({
      ...status,
      ...{ ready: false, restartCount: 1, state: { waiting: { reason: 'CrashLoopBackOff' } } },
      lastState: { terminated: { exitCode: 255, reason: 'Error', message: 'exec /app: exec format error' } },
    }));
    await product.patch(`${PODS}/${text(at(pod, 'metadata', 'name'))}/status`, { status: { containerStatuses } });
    await product.eventuallyTold(
      'WrongNode',
      /container main died with an exec format error on node .*; not evicted: its images say that they run on/,
    );
    expect(await controller.metric(METRIC, { reason: 'exec-format-error', action: 'warned' })).to.equal(1);
    expect(evictions()).to.deep.equal([]);
  });

  it('is nothing that plan lists', async () => {
    await start();
    await product.cluster.createPod({ name: 'bare', images: [amd], spec: { nodeName: 'arm64-1' } });
    const { stdout, stderr } = await product.command(['plan', '--output', 'json', ...EVICT]);
    expect(Object.keys(JSON.parse(stdout)), stderr).to.deep.equal(['changes', 'waiting', 'held', 'unresolved']);
    expect(product.cluster.writes()).to.deep.equal([]);
  });
});
