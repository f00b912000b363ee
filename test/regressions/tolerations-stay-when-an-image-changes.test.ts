import { expect } from 'chai';
import { PODS, type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) left tolerations of the old image in place, silently. They cannot be removed; we say so.
describe('an image that is changed in place', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('gives the pod what its new image needs, and an Event about what it should no longer tolerate', async () => {
    const [old, now] = [product.image('old', ['amd64']), product.image('now', ['arm64'])];
    await product.run();
    await product.cluster.createPod({ name: 'p', images: [old] });
    await product.eventuallyTolerates('p', 'amd64');
    await product.patch(`${PODS}/p`, [{ op: 'replace', path: '/spec/containers/0/image', value: now }]);
    await product.eventuallyTolerates('p', 'amd64', 'arm64');
    const note = await product.eventuallyTold('StaleToleration', /amd64/);
    expect(note).to.match(/still tolerates amd64, .*\(arm64\)/);
  });
});
