import { type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) never watched again once the server had closed its watch: it was blind from then on.
describe('a watch that ends is begun again', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  const endings = {
    'the server closes it': () => product.cluster.faults.closeWatches(),
    'its version has expired': () => product.cluster.faults.expireWatches(),
    'the server goes away and comes back': async () => {
      await product.cluster.stopApiServer();
      await product.cluster.startApiServer();
      await product.eventually(
        'an answer',
        async () => (await product.cluster.request('GET', '/readyz')).status === 200,
      );
    },
  };
  for (const [ending, end] of Object.entries(endings)) {
    it(`places a pod that is created after ${ending}`, async () => {
      await product.run();
      await end();
      await product.cluster.createPod({ name: 'p', images: [product.image('app', ['arm64'])] });
      await product.eventuallyTolerates('p', 'arm64');
    });
  }
});
