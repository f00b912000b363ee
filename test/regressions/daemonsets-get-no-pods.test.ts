import { expect } from 'chai';
import { at, text } from '../support/cluster/json.ts';
import { PODS, type Product, startProduct, workload } from '../support/product.ts';

// archaware-controller (2022) added tolerations to pods only. The DaemonSet controller creates no pods on nodes with
// other taints.
describe('DaemonSets get their pods on tainted nodes', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct({ nodes: ['amd64', 'arm64', 's390x'] });
  });
  afterEach(() => product.stop());

  const nodesOfPods = async () =>
    (await product.list(PODS))
      .filter((pod) => at(pod, 'metadata', 'deletionTimestamp') === undefined)
      .map((pod) => text(at(pod, 'spec', 'nodeName')))
      .sort();

  it('gives a DaemonSet that was created after the taints its pods on the nodes it can run on', async () => {
    await product.run();
    await product.eventuallyTainted();
    await product.cluster.apply(workload('DaemonSet', 'agent', [product.image('agent', ['amd64', 'arm64'])]));
    const nodes = await product.eventually('two daemon pods', async () => {
      const found = await nodesOfPods();
      return found.length === 2 && found;
    });
    expect(nodes).to.deep.equal(['amd64-1', 'arm64-1']);
  });
});
