import { expect } from 'chai';
import { createController } from '../../../src/kube/control-loop.ts';
import { known } from '../../placement/objects.ts';
import { arrangePod, KEY } from './world.ts';

const IMAGES = Array.from({ length: 60 }, (_, index) => `i${index}`);

describe('a pod with many images', () => {
  it('is decided once for many answers', async () => {
    const { clock, put, asked, world, controller } = arrangePod();
    put({ spec: { containers: IMAGES.map((image) => ({ name: image, image })) } });
    const outcomes: string[] = [];
    const { enqueue, enqueueAfter, idle, run } = createController({
      name: 'pod',
      workers: 1,
      reconcile: controller.reconcile,
      clock,
      isUrgent: () => true,
      onOutcome: (_key, _seconds, { outcome }) => outcomes.push(outcome),
    });
    const end = new AbortController();
    const running = run(end.signal, end.signal);
    const settle = async () => {
      do await new Promise((resolve) => setImmediate(resolve));
      while (!idle());
    };

    enqueue(KEY);
    await settle();
    expect(asked).to.have.members(IMAGES);
    for (const image of IMAGES) {
      world.answers[image] = known('linux/arm64');
      for (const { key, inMs } of controller.lookupEnded(`canonical/${image}`)) enqueueAfter(key, inMs);
      await settle();
    }
    expect(outcomes).to.deep.equal(['waiting', 'written']);
    expect(asked).to.have.members([...IMAGES, ...IMAGES]);
    end.abort();
    await running;
  });
});
