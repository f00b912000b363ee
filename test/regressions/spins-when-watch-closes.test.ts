import { expect } from 'chai';
import { type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) ran in a tight loop when its watch was closed: 34 million log lines (4.8 GB) in four
// minutes.
describe('a server that closes every watch at once is not asked in a tight loop', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('watches again a few times, later each time, and logs next to nothing', async () => {
    const controller = await product.run();
    await product.eventuallyTainted();
    product.cluster.forgetRequests();
    const watches = () => product.cluster.requests().filter(({ path }) => path.startsWith('/api/v1/pods?watch')).length;
    const lines = controller.logs().length;
    // Every new watch is closed as soon as it opens, until the backoff has grown: 0.25, 0.5, 1 s.
    await product.eventually('four watches of pods', async () => {
      product.cluster.faults.closeWatches();
      return watches() >= 4;
    });
    // In the time of these four, a tight loop would have opened thousands.
    expect(watches()).to.equal(4);
    expect(controller.logs().length - lines).to.be.at.most(10);
  });
});
