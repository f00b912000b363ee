import { expect } from 'chai';
import { type Product, startProduct } from '../support/product.ts';

const POOL = { 'karpenter.sh/nodepool': 'default' };

describe('run, where nodes come from pools', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  const join = (name: string, labels: Record<string, string>, taints: { key: string; value: string }[] = []) =>
    product.cluster.createNode({
      name,
      architecture: 'arm64',
      labels,
      taints: taints.map((taint) => ({ ...taint, effect: 'NoSchedule' })),
    });

  it('reports each node that joins without the taint, by Event and metric, and taints it', async () => {
    await join('arm64-before', POOL);
    const controller = await product.run();
    await product.eventuallyTainted();
    const count = (pool = 'default') => controller.metric('archaware_nodes_joined_untainted_total', { pool });
    expect(await count()).to.equal(0);
    await join('arm64-joined', POOL);
    await join('arm64-tainted', POOL, [{ key: 'supported-arch', value: 'arm64' }]);
    await join('arm64-alone', {});
    await join('arm64-group', { 'eks.amazonaws.com/nodegroup': 'workers' });
    await product.eventuallyTainted();
    await product.eventuallyTold('JoinedUntainted', /joined EKS node group workers without/);
    const note = await product.eventuallyTold('JoinedUntainted', /NodePool default without .* supported-arch=arm64:/);
    expect(note).to.include('docs/autoscalers.md');
    expect([await count(), await count('workers')]).to.deep.equal([1, 1]);
    const events = await product.list('/apis/events.k8s.io/v1/namespaces/default/events');
    const about = events.filter(({ reason }) => reason === 'JoinedUntainted');
    expect(about.map(({ regarding }) => regarding)).to.have.lengthOf(2);
  });

  it('says nothing where the taints are the work of others', async () => {
    const controller = await product.run(['--taints.manage=false']);
    await join('arm64-joined', POOL);
    await product.eventually('the node to be seen', async () => (await controller.metric('archaware_nodes')) === 3);
    expect(await controller.metric('archaware_nodes_joined_untainted_total')).to.equal(0);
    expect(await controller.metric('archaware_uninitialized_nodes')).to.equal(0);
  });
});
