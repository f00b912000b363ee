import { expect } from 'chai';
import { ours, runs, taints } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { daemonSet, deployment, pod } from '../support/workloads.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

describe('images that nothing is known of, on the real control plane', () => {
  let world: LiveWorld;
  let controller: RunningController;

  before(async () => {
    world = await startWorld();
  });
  after(() => world?.stop());

  describe('with images.unresolvable: open', () => {
    before(async () => {
      const flags = ['--images.fallbackAfter', '3s', '--images.cache.tagTtl', '1s', '--images.cache.failureTtl', '1s'];
      controller = await world.run(flags);
      // A pod that is bound before waits for nothing.
      for (const node of ['amd64-1', 'arm64-1']) {
        await world.eventually(`${node} to be tainted`, async () => taints(await world.node(node)).length > 0);
      }
    });
    after(() => world.stopControllers());

    it('says which image was not found and why, and holds the pod no longer than images.fallbackAfter', async () => {
      const namespace = await world.namespace('not-found');
      const created = performance.now();
      await world.create(pod(namespace, 'missing', { images: [world.image('nope')] }));
      const note = await world.eventuallyEvent(namespace, 'ImageUnresolvable', /not-found/);
      expect(note).to.include(world.image('nope')).and.to.include(world.registry.host);
      await world.eventuallyTolerates(namespace, 'missing', ours('amd64', 'arm64'));
      expect(performance.now() - created).to.be.within(3_000, 20_000);
      const open = await world.eventuallyEvent(namespace, 'OpenPlacement', /not resolved/);
      expect(open).to.include(world.image('nope'));
      expect(await controller.metric('archaware_pods', { outcome: 'open' })).to.be.at.least(1);
      expect(await controller.metric('archaware_unresolvable_images')).to.be.at.least(1);
    });
  });

  describe('before images.fallbackAfter is over', () => {
    before(async () => {
      await world.registry.start();
      controller = await world.run(['--images.fallbackAfter', '1h', '--images.cache.failureTtl', '1s']);
    });
    after(() => world.stopControllers());

    it('serves the pods that waited as soon as the registry is back', async () => {
      const namespace = await world.namespace('registry-down');
      await world.registry.stop();
      await world.create(
        pod(namespace, 'one', { images: [world.image('nested')] }),
        pod(namespace, 'two', { images: [world.image('untyped'), world.image('arm64')] }),
        deployment(namespace, 'three', { images: [world.image('nested')], replicas: 3 }),
        daemonSet(namespace, 'four', { images: [world.image('attestations')] }),
      );
      await world.eventuallyEvent(namespace, 'ImageUnresolvable', /nested could not be resolved \(unavailable\)/);
      await world.eventuallyEvent(namespace, 'ImageUnresolvable', /untyped/);
      const waiting = () => controller.metric('archaware_pods', { outcome: 'waiting' });
      await world.eventually('five pods to wait', async () => (await waiting()) >= 5);
      await world.registry.start();
      await world.eventuallyTolerates(namespace, 'one', ours('amd64', 'arm64', 's390x'));
      await world.eventuallyTolerates(namespace, 'two', ours('arm64'));
      await world.eventually('every pod to run', async () => {
        const pods = await world.list('Pod', namespace);
        return pods.length === 7 && pods.every(runs);
      });
      expect(await world.events(namespace, 'OpenPlacement')).to.deep.equal([]);
    });
  });
});
