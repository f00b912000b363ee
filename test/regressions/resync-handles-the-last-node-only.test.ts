import { expect } from 'chai';
import { type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) shared a loop variable between goroutines: a resync handled the last node again and
// again.
describe('every node is handled', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct({ nodes: [] });
  });
  afterEach(() => product.stop());

  it('taints each of twelve nodes with its own architecture, with one write each', async () => {
    const architectures = ['amd64', 'arm64', 's390x', 'ppc64le'];
    const nodes = Array.from({ length: 12 }, (_, index) => ({
      name: `n${index}`,
      architecture: architectures[index % 4] ?? '',
    }));
    for (const node of nodes) await product.cluster.createNode(node);
    await product.run();
    await product.eventuallyTainted();
    const paths = nodes.map(({ name }) => `PATCH /api/v1/nodes/${name}`);
    expect(product.written().sort()).to.deep.equal(paths.sort());
  });
});
