import { expect } from 'chai';
import { manifestOfObserve } from '../support/manifest.ts';
import { type Product, startProduct } from '../support/product.ts';
import type { RunningController } from '../support/running.ts';

const OBSERVE = ['--placement.mode', 'observe'];
const OUTCOME = 'archaware_pods';

describe('run, with placement.mode: observe', () => {
  let product: Product;
  beforeEach(async () => {
    // The account has the rights of the overlay: a write that it may not make would be in the log of requests with a 403.
    product = await startProduct({ cluster: { manifest: await manifestOfObserve() }, speed: 5 });
  });
  afterEach(() => product.stop());

  const eventually = (controller: RunningController, outcome: string, count: number) =>
    product.eventually(`${count} pod(s) to be ${outcome}`, async () => {
      return (await controller.metric(OUTCOME, { outcome })) === count;
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
