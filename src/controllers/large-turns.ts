import type { Clock } from '../kit/clock.ts';
import { createFairKeys } from '../kit/fairness/fair-keys.ts';

/**
 * The turns of objects that are too large to keep (`placement/objects/large.ts`). Whoever may create objects decides how many there
 * are, so one at a time is read and decided, namespaces take turns, and the work on them takes a fifth of the time at most.
 */
export type LargeTurns = {
  /** Whether the object may be read now; then call `end` when the work on it is over. Otherwise `onTurn` gets its key later. */
  begin(key: string): boolean;
  end(): void;
  /** Call it when the object is gone, or is not large any more. */
  forget(key: string): void;
  /** Ends the turns. */
  stop(): void;
};

/** How long others work for each millisecond of work on a large object. */
const OTHERS = 4;

/** Creates the turns. `isPaced`: whether there are pauses. `onTurn` must reconcile the object. */
export function createLargeTurns(clock: Clock, isPaced: boolean, onTurn: (key: string) => void): LargeTurns {
  const line = createFairKeys();
  /** The key whose turn has come, until its work begins. */
  let granted: string | undefined;
  let state: 'free' | 'busy' | 'pausing' = 'free';
  let began = 0;
  let cancel = (): void => {};

  function start(): true {
    state = 'busy';
    began = clock.monotonic();
    return true;
  }

  function next(): void {
    granted = line.take();
    state = granted === undefined ? 'free' : 'busy';
    if (granted !== undefined) onTurn(granted);
  }

  return {
    begin(key) {
      if (granted === key) {
        granted = undefined;
        return start();
      }
      if (state === 'free') return start();
      line.add(key);
      return false;
    },
    end() {
      state = 'pausing';
      cancel = clock.after(isPaced ? OTHERS * (clock.monotonic() - began) : 0, next);
    },
    forget(key) {
      line.delete(key);
      if (granted === key) next();
    },
    stop: () => cancel(),
  };
}
