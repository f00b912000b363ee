import { expect } from 'chai';
import { systemClock } from '../../src/kit/clock.ts';
import { createTurns } from '../../src/kit/fairness/event-loop.ts';
import { createController, type Outcome, type Reconciler } from '../../src/kube/control-loop.ts';
import { LeaseLostError } from '../../src/kube/errors.ts';

describe('a controller', () => {
  let end: AbortController;
  let kill: AbortController;
  let outcomes: string[];
  beforeEach(() => {
    [end, kill, outcomes] = [new AbortController(), new AbortController(), []];
  });
  afterEach(() => {
    end.abort();
    kill.abort();
  });

  const create = (reconcile: Reconciler, onOutcome?: (key: string, outcome: Outcome | 'error') => void) =>
    createController({
      name: 'pod',
      workers: 2,
      reconcile,
      isUrgent: () => true,
      clock: { ...systemClock, random: () => -2 },
      onOutcome(key, _seconds, { outcome }) {
        outcomes.push(`${key} ${outcome}`);
        onOutcome?.(key, outcome);
      },
    });
  const tick = () => new Promise((resolve) => setImmediate(resolve));
  const until = async (condition: () => boolean) => {
    while (!condition()) await tick();
  };

  it('retries after errors and conflicts until it succeeds', async () => {
    const results: (Outcome | Error)[] = [new Error('down'), 'conflict', 'written'];
    const controller = create(async () => {
      const result = results.shift() ?? 'unchanged';
      if (result instanceof Error) throw result;
      return { outcome: result };
    });
    controller.enqueue('k');
    const ended = controller.run(end.signal, kill.signal);
    await until(() => outcomes.length === 3);
    end.abort();
    await ended;
    expect(outcomes).to.deep.equal(['k error', 'k conflict', 'k written']);
  });

  it('reconciles a key again at the time that its result names', async () => {
    let runs = 0;
    const controller = create(async () => ({ outcome: 'waiting', againInMs: ++runs < 3 ? 1 : undefined }));
    controller.enqueue('k');
    const ended = controller.run(end.signal, kill.signal);
    await until(() => runs === 3);
    end.abort();
    await ended;
    expect(outcomes).to.deep.equal(['k waiting', 'k waiting', 'k waiting']);
  });

  it('never has two workers on one key', async () => {
    let working = 0;
    let most = 0;
    let runs = 0;
    const controller = create(async () => {
      most = Math.max(most, ++working);
      await tick();
      working--;
      runs++;
      return { outcome: 'unchanged' };
    });
    const ended = controller.run(end.signal, kill.signal);
    while (runs < 20) {
      controller.enqueue('k');
      await tick();
    }
    end.abort();
    await ended;
    expect(most).to.equal(1);
  });

  // archaware-controller (2022) started a goroutine for each event.
  it('works on no more keys at once than it has workers, and once for many events of one key', async () => {
    const release: (() => void)[] = [];
    let [working, most] = [0, 0];
    const controller = create(async () => {
      most = Math.max(most, ++working);
      await new Promise<void>((resolve) => release.push(resolve));
      working--;
      return { outcome: 'unchanged' };
    });
    const keys = Array.from({ length: 50 }, (_, index) => `default/p${index}`);
    for (let event = 0; event < 20; event++) for (const key of keys) controller.enqueue(key);
    const ended = controller.run(end.signal, kill.signal);
    while (!controller.idle()) {
      for (const resolve of release.splice(0)) resolve();
      await tick();
    }
    end.abort();
    await ended;
    // Of two that end together, either may be first.
    expect([most, outcomes.sort()]).to.deep.equal([2, keys.map((key) => `${key} unchanged`).sort()]);
  });

  it('takes nothing new after its signal aborts, and waits for the work under way', async () => {
    let finish = () => {};
    const controller = create(async (key) => {
      if (key === 'slow') await new Promise<void>((resolve) => (finish = resolve));
      return { outcome: 'written' };
    });
    controller.enqueue('slow');
    const ended = controller.run(end.signal, kill.signal);
    await until(() => controller.depth() === 0);
    end.abort();
    controller.enqueue('late');
    let over = false;
    void ended.then(() => (over = true));
    await tick();
    expect(over).to.equal(false);
    finish();
    await ended;
    expect(outcomes).to.deep.equal(['slow written']);
  });

  it('does not retry at once what the Lease prevented', async () => {
    const planned: number[] = [];
    let runs = 0;
    const controller = createController({
      name: 'pod',
      workers: 1,
      async reconcile() {
        runs++;
        throw new LeaseLostError('not written');
      },
      isUrgent: () => true,
      clock: {
        ...systemClock,
        after(ms) {
          planned.push(ms);
          return () => {};
        },
      },
      onOutcome: () => undefined,
    });
    for (const key of ['a', 'b', 'c']) controller.enqueue(key);
    const ended = controller.run(end.signal, kill.signal);
    await until(() => controller.idle());
    end.abort();
    await ended;
    expect([runs, planned]).to.deep.equal([3, [5_000, 5_000, 5_000]]);
  });

  it('passes the kill signal to the reconciler, and does not report the errors that it causes', async () => {
    const controller = create(
      (_key, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        }),
    );
    controller.enqueue('k');
    const ended = controller.run(end.signal, kill.signal);
    await until(() => controller.depth() === 0);
    end.abort();
    kill.abort();
    await ended;
    expect(outcomes).to.deep.equal([]);
  });

  it('gives the event loop a turn after 8 ms of work, however many keys and workers there are', async () => {
    let [now, turn, planned] = [0, 0, [] as (() => void)[]];
    const turns = createTurns({ monotonic: () => now }, (run) => void planned.push(run));
    const work = new Map<number, number>();
    const controller = createController({
      name: 'pod',
      workers: 16,
      async reconcile() {
        now += 3;
        work.set(turn, (work.get(turn) ?? 0) + 3);
        return { outcome: 'waiting' };
      },
      isUrgent: () => true,
      clock: systemClock,
      turns,
      onOutcome: (key) => outcomes.push(key),
    });
    const running = controller.run(end.signal, kill.signal);
    for (let key = 0; key < 200; key += 1) controller.enqueue(`${key}`);
    while (!controller.idle()) {
      await tick();
      turn += 1;
      const due = planned;
      planned = [];
      for (const run of due) {
        run();
        await Promise.resolve();
      }
    }
    expect(outcomes).to.have.length(200);
    expect(Math.max(...work.values())).to.be.at.most(12);
    end.abort();
    await running;
  });
});
