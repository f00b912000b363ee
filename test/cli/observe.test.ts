import { expect } from 'chai';
import { at, type JsonObject, object, objects, text } from '../simulator/json.ts';
import { manifestOfObserve } from '../support/manifest.ts';
import { PODS, type Product, startProduct, tolerated, workload } from '../support/product.ts';
import type { RunningController } from '../support/running.ts';

const OBSERVE = ['--placement.mode', 'observe'];
const OUTCOME = 'archaware_pods';
const ACCOUNT = 'system:serviceaccount:archaware:archaware-controller';
/** What a container that was pulled for another architecture looks like, with the reason only in its log. */
const CRASHES = {
  ...{ ready: false, started: false, restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } } },
  lastState: { terminated: { exitCode: 255, reason: 'Error' } },
};

describe('run, with placement.mode: observe', () => {
  let product: Product;
  beforeEach(async () => {
    // The account has the rights of the overlay: a write that it may not make would be in the log of requests with a 403.
    product = await startProduct({ cluster: { manifest: await manifestOfObserve() }, speed: 5 });
  });
  afterEach(() => product.stop());

  /** Everything that the account sent, reads apart, as `POST events 201`. */
  const sent = () => {
    const writes = product.cluster.requests().filter(({ user, method }) => user === ACCOUNT && method !== 'GET');
    return [...new Set(writes.map(({ method, path, status }) => `${method} ${collectionOf(path)} ${status}`))].sort();
  };
  const eventually = (controller: RunningController, outcome: string, count: number) =>
    product.eventually(`${count} pod(s) to be ${outcome}`, async () => {
      return (await controller.metric(OUTCOME, { outcome })) === count;
    });
  const crash = async (name: string, digest: string) => {
    const pod = await product.eventually(`${name} to run`, async () => {
      const found = await product.get(`${PODS}/${name}`);
      return at(found, 'status', 'phase') === 'Running' && found;
    });
    const containerStatuses = objects(at(pod, 'status', 'containerStatuses')).map((status) => ({
      ...status,
      imageID: `${text(status.image).replace(/:[^:]*$/, '')}@${digest}`,
      ...CRASHES,
    }));
    await product.patch(`${PODS}/${name}/status`, { status: { containerStatuses } });
  };

  it('decides, counts and writes Events, and sends no other write', async () => {
    const digest = product.registry.put('amd', '1', ['amd64']);
    const [amd, arm] = [`${product.registry.host}/amd:1`, product.image('arm', ['arm64'])];
    const { cluster } = product;
    await cluster.createPod({ name: 'wrong', images: [amd], spec: { nodeName: 'arm64-1' } });
    await cluster.createPod({ name: 'both', images: [product.image('multi', ['amd64', 'arm64'])] });
    await cluster.createPod({ name: 'torn', images: [amd, arm] });
    await cluster.createPod({ name: 'lost', images: [`${product.registry.host}/lost:1`] });
    await cluster.createPod({
      name: 'ignored',
      images: [amd],
      metadata: { labels: { 'archaware.dev/ignore': 'true' } },
    });
    await cluster.apply(workload('DaemonSet', 'agent', [amd, arm]));
    const before = await Promise.all([product.list('/api/v1/nodes'), product.list('/apis/apps/v1/daemonsets')]);
    const controller = await product.run([...OBSERVE, '--images.fallbackAfter', '1s']);
    await crash('wrong', digest);

    await product.eventuallyEvent('default', 'ImageUnresolvable', /lost/);
    await product.eventuallyEvent('default', 'NoCommonArchitecture', /amd:1 .*arm:1/);
    await product.eventuallyEvent(
      'default',
      'WrongNode',
      /fails on node arm64-1 .*not evicted: pods\.onWrongNode is warn/,
    );
    await eventually(controller, 'placed', 2);
    await eventually(controller, 'held', 1);
    await eventually(controller, 'open', 1);
    // The bound pods of the DaemonSet do not count: its template is what is decided on.
    await eventually(controller, 'ignored', 1);
    expect(await controller.metric('archaware_wrong_node_pods')).to.equal(1);
    expect(await controller.metric('archaware_image_resolutions_total', { result: 'ok' })).to.be.greaterThan(2);
    expect(
      await controller.metric('archaware_reconcile_total', { controller: 'pod', result: 'unchanged' }),
    ).to.be.above(0);
    expect(await controller.metric('archaware_reconcile_total', { result: 'written' })).to.equal(0);
    expect(await controller.metric('archaware_reconcile_total', { result: 'error' })).to.equal(0);
    expect(await controller.metric('archaware_tainted_nodes')).to.equal(0);

    const after = await Promise.all([product.list('/api/v1/nodes'), product.list('/apis/apps/v1/daemonsets')]);
    expect(after.map(specs)).to.deep.equal(before.map(specs));
    for (const pod of await product.list(PODS))
      expect(tolerated(pod.spec), text(at(pod, 'metadata', 'name'))).to.be.empty;
    const isAllowed = (line: string) =>
      /^(POST|PUT|PATCH) (events|leases) 20[01]$/.test(line) || /^(POST|PATCH) \S+\/configmaps\b/.test(line);
    expect(sent().filter((line) => !isAllowed(line))).to.deep.equal([]);
    const written = async () =>
      (await product.list('/api/v1/configmaps')).map((one) => text(at(one, 'metadata', 'name')));
    await product.eventually('the status of the leader', async () => (await written()).length === 2);
    expect(await written()).to.have.members(['archaware-controller', 'archaware-controller-status']);
    expect(sent()).to.include.members(['POST events 201', 'POST leases 201']);
  });

  it('says what it would do with a pod whose image stays unknown', async () => {
    await product.cluster.createPod({
      name: 'lost',
      images: [`${product.registry.host}/lost:1`],
      spec: { nodeSelector: { 'example.com/none': 'x' } },
    });
    await product.run([...OBSERVE, '--images.fallbackAfter', '0s']);
    await product.eventuallyEvent('default', 'OpenPlacement', /^would tolerate amd64, arm64: not resolved: /);
  });

  it('reports tolerations that an earlier mode left behind and that no longer fit', async () => {
    const tolerations = [{ key: 'supported-arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' }];
    await product.cluster.createPod({ name: 'old', images: [product.image('amd', ['amd64'])], spec: { tolerations } });
    await product.run(OBSERVE);
    await product.eventuallyEvent('default', 'StaleToleration', /arm64/);
  });

  it('writes no label by rules', async () => {
    await product.patch('/api/v1/nodes/amd64-1', { metadata: { labels: { 'example.com/found': 'true' } } });
    const controller = await product.run([
      ...OBSERVE,
      '--nodeLabels.directory',
      'manifests/helm/archaware-controller/files/labels',
    ]);
    await product.cluster.createPod({ name: 'last', images: [product.image('app', ['arm64'])] });
    await eventually(controller, 'placed', 1);
    expect(await controller.metric('archaware_reconcile_total', { controller: 'node' })).to.equal(0);
  });
});

function collectionOf(path: string): string {
  return /\/(events|leases)(?:[/?]|$)/.exec(path)?.[1] ?? path;
}

/** What of objects the controller could write. */
function specs(items: readonly JsonObject[]): unknown[] {
  return items.map(({ metadata, spec }) => {
    const { labels, annotations, name } = object(metadata);
    return { name, labels, annotations, spec };
  });
}
