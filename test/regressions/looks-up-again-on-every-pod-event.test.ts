import { expect } from 'chai';
import { ours } from '../support/objects.ts';
import { PODS, type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) sent 2 to 4 requests for every image at every event of a pod.
describe('an image is not looked up again on every pod event', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('sends one lookup for twenty pods of one image, and none when they change', async () => {
    const image = product.image('app', ['amd64']);
    await product.run();
    const names = Array.from({ length: 20 }, (_, index) => `p${index}`);
    await Promise.all(names.map((name) => product.cluster.createPod({ name, images: [image] })));
    for (const name of names) await product.eventuallyTolerates('default', name, ours('amd64'));
    for (const round of ['1', '2', '3']) {
      await Promise.all(names.map((name) => product.patch(`${PODS}/${name}`, { metadata: { labels: { round } } })));
    }
    // This pod comes after all of those events, so any work that they caused has begun when it is placed.
    await product.cluster.createPod({ name: 'last', images: [product.image('other', ['arm64'])] });
    await product.eventuallyTolerates('default', 'last', ours('arm64'));
    expect(product.lookUps('app')).to.equal(1);
  });
});
