import { expect } from 'chai';
import { PODS, type Product, startProduct, tolerated } from '../support/product.ts';

const PODS_AT_ONCE = 100;

// archaware-controller (2022): 5 requests a second, and it read every pod before it wrote it. Of 1,000 pods created at
// once none had a toleration after 80 s.
describe('a burst of pods is served without reading each of them', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('places 100 pods by one request each', async () => {
    const image = product.image('app', ['amd64', 'arm64']);
    await product.run();
    await product.eventuallyTainted();
    product.cluster.forgetRequests();
    const names = Array.from({ length: PODS_AT_ONCE }, (_, index) => `p${index}`);
    await Promise.all(names.map((name) => product.cluster.createPod({ name, images: [image] })));
    const asked = () =>
      product.cluster.requests().filter(({ user, path }) => user !== 'admin' && path.startsWith(PODS));
    await product.eventually('all to be placed', async () => asked().length >= PODS_AT_ONCE);
    const pods = await product.list(PODS);
    expect(pods.filter((pod) => tolerated(pod.spec).length !== 2)).to.deep.equal([]);
    expect(asked().map(({ method, status }) => `${method} ${status}`)).to.deep.equal(names.map(() => 'PATCH 200'));
  });
});
