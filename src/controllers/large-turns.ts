import type { Clock } from '../kit/clock.ts';
import { createFairKeys } from '../kit/fairness/fair-keys.ts';
import type { Result } from '../kube/controller.ts';

/**
 * The turns of objects that are too large to keep (`placement/objects/large.ts`). Authors of objects decide how many there
 * are, so one at a time is read and decided, namespaces take turns, and there is a pause after each.
 */
export type LargeTurns = {
  /**
   * Whether the object may be read now; then call `end` when the work on it is over. Otherwise `onTurn` gets its key later.
   * `isNew`: it was not decided yet. Every second turn is for such an object, because those that wait for images come again.
   */
  begin(key: string, isNew: boolean): boolean;
  end(): void;
  /** Call it when the object is gone, or is not large any more. */
  forget(key: string): void;
  /** Ends the turns. */
  stop(): void;
};

/** The result of an object whose turn has not come. */
export const WAITS_FOR_LARGE_TURN: Result = { outcome: 'waiting', isPostponed: true };

/** The pause in milliseconds. To read and to decide the largest object takes some 40 ms of CPU time. */
const PAUSE_MS = 100;

/** Creates the turns. `isPaced`: whether there are pauses. `onTurn` must reconcile the object. */
export function createLargeTurns(clock: Clock, isPaced: boolean, onTurn: (key: string) => void): LargeTurns {
  const [newOnes, others] = [createFairKeys(), createFairKeys()];
  let wasNew = false;
  /** The key whose turn has come, until its work begins. */
  let granted: string | undefined;
  let state: 'free' | 'busy' | 'pausing' = 'free';
  let cancel = (): void => {};

  function start(): true {
    state = 'busy';
    return true;
  }

  function next(): void {
    granted = wasNew ? (others.take() ?? newOnes.take()) : (newOnes.take() ?? others.take());
    wasNew = !wasNew;
    state = granted === undefined ? 'free' : 'busy';
    if (granted !== undefined) onTurn(granted);
  }

  return {
    begin(key, isNew) {
      if (granted === key) {
        granted = undefined;
        return start();
      }
      if (state === 'free') return start();
      if (isNew) newOnes.add(key);
      else if (!newOnes.has(key)) others.add(key);
      return false;
    },
    end() {
      state = 'pausing';
      cancel = clock.after(isPaced ? PAUSE_MS : 0, next);
    },
    forget(key) {
      for (const line of [newOnes, others]) line.delete(key);
      if (granted === key) next();
    },
    stop: () => cancel(),
  };
}
