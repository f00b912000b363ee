import { startProduct, PODS, tolerated } from '../test/support/product.ts';
import { recordCalls } from '../test/support/recorded-calls.ts';
describe('walk', () => {
  it('pod', async () => {
    const product = await startProduct();
    const image = product.image('app', ['amd64', 'arm64']);
    await product.cluster.createPod({ name: 'a', images: [image] });
    await product.run();
    await product.eventuallyTainted();
    await product.eventually('x', async () => (await product.list(PODS)).every((pod) => tolerated(pod.spec).length === 2));
    const calls = await recordCalls([
      { file: 'placement/decide.ts', name: 'decide' },
      { file: 'placement/subject.ts', name: 'readPodSubject' },
      { file: 'placement/objects/pod.ts', name: 'readPod' },
    ], async () => {
      await product.cluster.createPod({ name: 'b', images: [image] });
      await product.eventually('x', async () => {const pods=await product.list(PODS); return pods.length===2&&pods.every((pod) => tolerated(pod.spec).length === 2)});
    });
    console.log(calls);
    await product.stop();
  });
});
