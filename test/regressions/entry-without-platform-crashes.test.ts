import { expect } from 'chai';
import { type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) read the platform of every entry of an index, and crashed at the first entry without one.
describe('an index with an entry without a platform causes no crash', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('reads the config blob of that entry instead, and goes on', async () => {
    const controller = await product.run();
    await product.cluster.createPod({ name: 'p', images: [product.fixture('unnamed')] });
    await product.eventuallyTolerates('p', 'amd64', 'arm64');
    expect(await controller.stop()).to.equal(0);
  });
});
