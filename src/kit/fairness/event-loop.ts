import type { Clock } from '../clock.ts';

/**
 * Turns of the event loop. While a loop over many items runs, no timer fires and no socket is read: the Lease is not renewed, and
 * nobody is answered. A loop over many items asks {@link isOver} between two of them.
 */
export type Turns = {
  /** Whether this turn has lasted long enough. The first call in a turn begins to count. */
  isOver(): boolean;
  /** Resolves in the next turn, after timers and sockets had theirs. */
  next(): Promise<void>;
};

/** Milliseconds of work in one turn. Two such turns and one item stay below 20 ms. */
const MOST_MS = 8;

/** Creates the turns. What shares them shares the time of a turn. `later`: runs a function in the next turn. */
export function createTurns(
  { monotonic }: Pick<Clock, 'monotonic'>,
  later: (run: () => void) => void = (run) => void setImmediate(run),
): Turns {
  let began: number | undefined;
  return {
    isOver() {
      const now = monotonic();
      if (began !== undefined) return now - began >= MOST_MS;
      began = now;
      later(() => {
        began = undefined;
      });
      return false;
    },
    next: () => new Promise((resolve) => later(resolve)),
  };
}

/**
 * Does `each` for every item, in as many turns as it takes; the first one begins at once. Undefined if one turn was enough.
 * `items` may change meanwhile if its iterator allows that, as those of maps and sets do.
 */
export function inTurns<T>(turns: Turns, items: Iterable<T>, each: (item: T) => void): Promise<void> | undefined {
  const left = items[Symbol.iterator]();
  /** Whether all is done. */
  const work = (): boolean => {
    for (let next = left.next(); next.done !== true; next = left.next()) {
      each(next.value);
      if (turns.isOver()) return false;
    }
    return true;
  };
  const rest = async (): Promise<void> => {
    do await turns.next();
    while (!work());
  };
  return work() ? undefined : rest();
}
