import { manifestOfObserve } from '../../support/manifest.ts';
import { startProduct } from '../../support/product.ts';
import { describeProgram } from './both.ts';

describeProgram('in the process of the test', async ({ nodes, manifest } = {}) => {
  const product = await startProduct({
    ...(nodes && { nodes: [] }),
    ...(manifest && { cluster: { manifest: await manifestOfObserve() } }),
  });
  for (const node of nodes ?? []) await product.cluster.createNode(node);
  return product;
});
