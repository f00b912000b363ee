import { expect } from 'chai';
import { systemClock } from '../../src/kit/clock.ts';
import { createTurns } from '../../src/kit/fairness/event-loop.ts';
import {
  type ControllerOptions,
  createController,
  type Outcome,
  type Reconciler,
} from '../../src/kube/control-loop.ts';
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

  const create = (reconcile: Reconciler, more: Partial<ControllerOptions> = {}) =>
    createController({
      ...{ name: 'pod', workers: 2, reconcile, isUrgent: () => true },
      clock: { ...systemClock, random: () => -2 },
      onOutcome: (key, _seconds, { outcome }) => outcomes.push(`${key} ${outcome}`),
      ...more,
    });
  const tick = () => new Promise((resolve) => setImmediate(resolve));
  const until = async (condition: () => boolean) => {
    while (!condition()) await tick();
  };
  /** Runs a controller until the condition holds, and to its end. */
  async function work({ run }: ReturnType<typeof create>, condition: () => boolean): Promise<void> {
    const ended = run(end.signal, kill.signal);
    await until(condition);
    end.abort();
    await ended;
  }

  it('retries after errors and conflicts until it succeeds', async () => {
    const results: (Outcome | Error)[] = [new Error('down'), 'conflict', 'written'];
    const controller = create(async () => {
      const result = results.shift() ?? 'unchanged';
      if (result instanceof Error) throw result;
      return { outcome: result };
    });
    controller.enqueue('k');
    await work(controller, () => outcomes.length === 3);
    expect(outcomes).to.deep.equal(['k error', 'k conflict', 'k written']);
  });

  it('reconciles a key again at the time that its result names', async () => {
    let runs = 0;
    const controller = create(async () => ({ outcome: 'waiting', againInMs: ++runs < 3 ? 1 : undefined }));
    controller.enqueue('k');
    await work(controller, () => runs === 3);
    expect(outcomes).to.deep.equal(['k waiting', 'k waiting', 'k waiting']);
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
    await work(controller, () => {
      for (const resolve of release.splice(0)) resolve();
      return controller.idle();
    });
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
    const after = (ms: number) => {
      planned.push(ms);
      return () => {};
    };
    const reconcile = async () => {
      runs++;
      throw new LeaseLostError('not written');
    };
    const controller = create(reconcile, { clock: { ...systemClock, after } });
    for (const key of ['a', 'b', 'c']) controller.enqueue(key);
    await work(controller, controller.idle);
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
    const worked = new Map<number, number>();
    const reconcile: Reconciler = async () => {
      now += 3;
      worked.set(turn, (worked.get(turn) ?? 0) + 3);
      return { outcome: 'waiting' };
    };
    const controller = create(reconcile, { workers: 16, turns });
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
    expect(Math.max(...worked.values())).to.be.at.most(12);
    end.abort();
    await running;
  });
});
