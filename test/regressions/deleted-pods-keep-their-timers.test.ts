import { expect } from 'chai';
import { PODS, type Product, startProduct } from '../support/product.ts';

/** A held pod is looked at again after ten minutes; `npm run soak` showed that a deleted one was, too. */
describe('pods that are deleted while they are held', () => {
  const COUNT = 40;
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

  it('leave no timer behind', async () => {
    const images = [product.image('one', ['amd64']), product.image('other', ['arm64'])];
    const controller = await product.run();
    const names = Array.from({ length: COUNT }, (_, index) => `held-${index}`);
    await Promise.all(names.map((name) => product.cluster.createPod({ name, images })));
    const held = (count: number) =>
      product.eventually(
        `${count} pods to be held`,
        async () => (await controller.metric('archaware_pods', { outcome: 'held' })) === count,
      );
    await held(COUNT);
    const before = timers();
    await Promise.all(names.map((name) => product.cluster.request('DELETE', `${PODS}/${name}`)));
    await held(0);
    await product.eventually('the timers to go', async () => timers() <= before - COUNT);
    expect(before).to.be.at.least(COUNT);
  });
});
