import { ours } from '../support/objects.ts';
import { type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) never opened a new watch after the server had closed one, and saw no events from then on.
describe('a new watch follows one that ends', () => {
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
      await product.eventuallyTolerates('default', 'p', ours('arm64'));
    });
  }
});
