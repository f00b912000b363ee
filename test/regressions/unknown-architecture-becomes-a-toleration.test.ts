import { type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) added a toleration for every entry of an index, including attestations (unknown/unknown).
describe('an entry of unknown architecture does not become a toleration', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('leaves attestations out', async () => {
    await product.run();
    await product.cluster.createPod({ name: 'p', images: [product.fixture('attestations')] });
    await product.eventuallyTolerates('p', 'amd64', 'arm64');
  });
});
