import { expect } from 'chai';
import { ours } from '../support/objects.ts';
import { PODS, type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) silently left the tolerations of the old image in place. They cannot be removed; this
// controller reports them.
describe('an image that is changed in place', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('gives the pod the tolerations of its new image, and an Event about those that it should no longer have', async () => {
    const [old, now] = [product.image('old', ['amd64']), product.image('now', ['arm64'])];
    await product.run();
    await product.cluster.createPod({ name: 'p', images: [old] });
    await product.eventuallyTolerates('default', 'p', ours('amd64'));
    await product.patch(`${PODS}/p`, [{ op: 'replace', path: '/spec/containers/0/image', value: now }]);
    await product.eventuallyTolerates('default', 'p', ours('amd64', 'arm64'));
    const note = await product.eventuallyEvent('default', 'StaleToleration', /amd64/);
    expect(note).to.match(/still tolerates amd64, but its images now run on arm64/);
  });
});
