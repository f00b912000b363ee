import { expect } from 'chai';
import { systemClock } from '../../src/kit/clock.ts';
import { createController } from '../../src/kube/controller.ts';

// archaware-controller (2022) started a goroutine for each event, so a burst of events started as much work at once.
describe('a burst of events is not a burst of work', () => {
  it('works on no more keys at once than there are workers, and once for many events of one key', async () => {
    const end = new AbortController();
    const release: (() => void)[] = [];
    const runs = new Map<string, number>();
    const most = { now: 0, ever: 0 };
    const controller = createController({
      name: 'pod',
      workers: 3,
      clock: systemClock,
      priorityOf: () => 'urgent',
      onOutcome: () => {},
      async reconcile(key) {
        runs.set(key, (runs.get(key) ?? 0) + 1);
        most.now++;
        most.ever = Math.max(most.ever, most.now);
        await new Promise<void>((resolve) => release.push(resolve));
        most.now--;
        return { outcome: 'unchanged' };
      },
    });
    const keys = Array.from({ length: 50 }, (_, index) => `default/p${index}`);
    for (let event = 0; event < 20; event++) for (const key of keys) controller.enqueue(key);
    expect(controller.depth()).to.equal(50);
    const ended = controller.run(end.signal, end.signal);
    while (!controller.idle()) {
      for (const resolve of release.splice(0)) resolve();
      await new Promise((resolve) => setImmediate(resolve));
    }
    end.abort();
    await ended;
    expect(most.ever).to.equal(3);
    expect([...runs.values()]).to.deep.equal(keys.map(() => 1));
  });
});
