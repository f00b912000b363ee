/**
 * Failures of archaware-controller (2022) and k8s-auto-labeller (2020), the programs that this one replaces. Here are the failures
 * that only a whole product shows. The others have a row or a test of the rule that prevents them:
 *
 * | failure | prevented by |
 * | --- | --- |
 * | each image was compared with the first one only | placement/decide.test.ts: "the second and the third of three differ" |
 * | image volumes were ignored | placement/image-volumes.test.ts: "an index narrows" |
 * | pods of WebAssembly images were held for ever | placement/webassembly.test.ts |
 * | tolerations of an old image stayed unseen | controllers/announce.test.ts: "a toleration that the images no longer need" |
 * | every event started work at once | kube/control-loop.test.ts: "works on no more keys at once than it has workers" |
 * | a pod was given up after five tries | kube/workqueue.test.ts: "retries again and again" |
 * | a closed watch was opened in a tight loop, or never | kube/watch/reflector.test.ts, kube/reflector-failures.test.ts |
 * | pods were kept whole in memory | placement/objects/pod.test.ts: "keeps nothing else" |
 * | clean deleted every pod | clean/cleaned.test.ts: "bare", cli/both/clean.ts |
 * | a label with the value false counted | placement/nodes/labels.test.ts: "what it needs is false now" |
 * | line ends and comments broke rules, swap files too | placement/nodes/label-rules.test.ts, app/label-rules/files.test.ts |
 * | labels of Kubernetes were written | app/label-rules/files.test.ts, placement/nodes/node.test.ts: "never lists a label" |
 * | a conflict lost the removal of a label, replicas fought | cli/labels.test.ts, e2e/leader.e2e.ts |
 */
import { expect } from 'chai';
import { ours } from './support/objects.ts';
import { PODS, productForEach, tolerated } from './support/product.ts';

describe('past failures', () => {
  const product = productForEach();

  const create = (count: number, images: readonly string[]) => {
    const names = Array.from({ length: count }, (_, index) => `p${index}`);
    return Promise.all(names.map((name) => product.cluster.createPod({ name, images }))).then(() => names);
  };

  // archaware-controller (2022) read every pod before it wrote it, and sent 2 to 4 requests for every image at every event of a pod.
  it('a burst of 40 pods takes one write each and one lookup, and none when they change', async () => {
    const image = product.image('app', ['amd64', 'arm64']);
    await product.run();
    await product.eventuallyTainted();
    product.cluster.forgetRequests();
    const names = await create(40, [image]);
    const asked = () =>
      product.cluster.requests().filter(({ user, path }) => user !== 'admin' && path.startsWith(PODS));
    await product.eventually('all to be placed', async () => asked().length >= names.length);
    const pods = await product.list(PODS);
    expect(pods.filter((pod) => tolerated(pod.spec).length !== 2)).to.deep.equal([]);
    await Promise.all(names.map((name) => product.patch(`${PODS}/${name}`, { metadata: { labels: { a: 'b' } } })));
    // This pod comes after all of those events, so any work that they caused has begun when it is placed.
    await product.cluster.createPod({ name: 'last', images: [product.image('other', ['arm64'])] });
    await product.eventuallyTolerates('default', 'last', ours('arm64'));
    expect(asked().map(({ method, status }) => `${method} ${status}`)).to.deep.equal(
      [...names, 'last'].map(() => 'PATCH 200'),
    );
    expect(product.lookUps('app')).to.equal(1);
  });

  // A held pod is looked at again after ten minutes; `npm run soak` showed that a deleted one was, too.
  it('pods that are deleted while they are held leave no timer behind', async () => {
    const COUNT = 40;
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const controller = await product.run();
    const names = await create(COUNT, [product.image('one', ['amd64']), product.image('other', ['arm64'])]);
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
