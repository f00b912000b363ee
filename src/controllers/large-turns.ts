import type { Clock } from '../kit/clock.ts';
import { createFairKeys, type FairKeys } from '../kit/fairness/fair-keys.ts';
import type { Result } from '../kube/control-loop.ts';

/**
 * The turns of objects that are too large to keep (`placement/objects/large.ts`). Authors of objects decide how many there
 * are, so one at a time is read and decided, namespaces take turns, and there is a pause after each.
 */
type LargeTurns = {
  /**
   * Does the work on a large object if its turn has come; the work begins with reading it. Otherwise `onTurn` gets its key later, and the
   * result is {@link WAITS_FOR_LARGE_TURN}.
   */
  large(key: string, line: LargeLine, work: () => Promise<Result>): Promise<Result>;
  /** Does the work on an object that is not large, or not any more. */
  small(key: string, work: () => Promise<Result>): Promise<Result>;
  /** Call it when the object is gone. */
  forget(key: string): void;
  stop(): void;
};

/**
 * The lines, which take turns. `new`: objects that were not decided yet. `again`: those that were; the ones that wait for images come
 * again and again. `bound`: pods that run already. A namespace may have thousands of these, and those that wait to be scheduled must
 * not wait behind them.
 */
type LargeLine = 'new' | 'again' | 'bound';

/** The result of an object whose turn has not come. */
export const WAITS_FOR_LARGE_TURN: Result = { outcome: 'waiting', isPostponed: true };

/** The pause in milliseconds. To read and to decide the largest object takes some 40 ms of CPU time. */
const PAUSE_MS = 100;

/** Creates the turns. `isPaced`: whether there are pauses. `onTurn` must reconcile the object. */
export function createLargeTurns(clock: Clock, isPaced: boolean, onTurn: (key: string) => void): LargeTurns {
  const lines: Readonly<Record<LargeLine, FairKeys>> = {
    new: createFairKeys(),
    again: createFairKeys(),
    bound: createFairKeys(),
  };
  /** The lines in the order of their turns. */
  let order = Object.values(lines);
  /** The key whose turn has come, until its work begins. */
  let granted: string | undefined;
  let state: 'free' | 'busy' | 'pausing' = 'free';
  let cancel = (): void => {};

  function start(): true {
    state = 'busy';
    return true;
  }

  function next(): void {
    const line = order.find(({ size }) => size > 0);
    granted = line?.take();
    order = [...order.filter((each) => each !== line), ...order.filter((each) => each === line)];
    state = granted === undefined ? 'free' : 'busy';
    if (granted !== undefined) onTurn(granted);
  }

  /** Whether the object may be read now. */
  function begin(key: string, line: LargeLine): boolean {
    if (granted === key) {
      granted = undefined;
      return start();
    }
    if (state === 'free') return start();
    if (!order.some((each) => each.has(key))) lines[line].add(key);
    return false;
  }

  function forget(key: string): void {
    for (const line of order) line.delete(key);
    if (granted === key) next();
  }

  return {
    async large(key, line, work) {
      if (!begin(key, line)) return WAITS_FOR_LARGE_TURN;
      try {
        return await work();
      } finally {
        state = 'pausing';
        cancel = clock.after(isPaced ? PAUSE_MS : 0, next);
      }
    },
    small(key, work) {
      forget(key);
      return work();
    },
    forget,
    stop: () => cancel(),
  };
}
