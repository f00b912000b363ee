import { expect } from 'chai';
import { at, text } from '../simulator/json.ts';
import { PODS, type Product, startProduct, tolerated, workload } from '../support/product.ts';

// archaware-controller (2022) deleted every pod of the cluster, even bare ones, without asking and despite
// PodDisruptionBudgets.
describe('clean does not delete every pod', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  const uids = async () =>
    new Map((await product.list(PODS)).map((pod) => [text(at(pod, 'metadata', 'name')), at(pod, 'metadata', 'uid')]));
  const withTolerations = async () => (await product.list(PODS)).filter((pod) => tolerated(pod.spec).length > 0);

  /** A Deployment of two pods and a bare pod, both placed by the controller; and a pod that it does not manage. */
  async function settled() {
    const image = product.image('app', ['amd64', 'arm64']);
    await product.cluster.createPod({
      name: 'strange',
      images: [image],
      metadata: { labels: { 'archaware.dev/ignore': 'true' } },
    });
    const controller = await product.run();
    await product.cluster.apply(workload('Deployment', 'web', [image], { spec: { replicas: 2 } }));
    await product.cluster.createPod({ name: 'bare', images: [image] });
    await product.eventually('three placed pods', async () => (await withTolerations()).length === 3);
    await product.eventuallyTainted();
    await controller.stop();
  }

  it("keeps pods without the controller's tolerations, and names bare ones instead of deleting them", async () => {
    await settled();
    const before = await uids();
    const { code, stdout } = await product.command(['clean', '--yes', '--output', 'json', '--timeout', '60s']);
    const after = await uids();
    expect(after.get('strange')).to.equal(before.get('strange'));
    expect(after.get('bare')).to.equal(before.get('bare'));
    expect(code).to.equal(2);
    const result: unknown = JSON.parse(stdout);
    expect(at(result, 'removed', 'pods')).to.equal(2);
    expect(at(result, 'left')).to.have.lengthOf(1).and.to.have.nested.property('[0].name', 'bare');
  });

  it('says first what it will do, and changes nothing if it is only asked for that', async () => {
    await settled();
    const before = await uids();
    product.cluster.forgetRequests();
    const { code, stderr } = await product.command(['clean', '--dry-run']);
    expect(stderr).to.match(/pods with tolerations +2 +evict/);
    expect([code, product.cluster.writes(), await uids()]).to.deep.equal([0, [], before]);
  });
});
