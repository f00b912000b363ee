import { type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) looked only at spec.containers: an init container could crash the pod for ever.
describe('init containers count', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('restricts the set by an init container and by a sidecar', async () => {
    const [wide, arm] = [product.image('wide', ['amd64', 'arm64']), product.image('arm', ['arm64'])];
    await product.run();
    const init = { initContainers: [{ name: 'init', image: arm }] };
    const sidecar = { initContainers: [{ name: 'sidecar', image: arm, restartPolicy: 'Always' }] };
    await product.cluster.createPod({ name: 'init', images: [wide], spec: init });
    await product.cluster.createPod({ name: 'sidecar', images: [wide], spec: sidecar });
    await product.eventuallyTolerates('init', 'arm64');
    await product.eventuallyTolerates('sidecar', 'arm64');
  });
});
