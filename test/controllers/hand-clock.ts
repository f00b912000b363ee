import type { Clock } from '../../src/kit/clock.ts';

/** A clock that stands still until it is moved. */
export type HandClock = Clock & {
  /** Moves both clocks forward, and runs everything that was waiting for a time up to then. */
  advance(ms: number): Promise<void>;
  /** How many delays are under way; calls planned with `after` do not count. */
  readonly waiting: number;
};

/** Creates a clock that begins at 0. */
export function createHandClock(): HandClock {
  let now = 0;
  const waiting = new Set<{ at: number; wake: () => void }>();
  const planned = new Set<{ at: number; wake: () => void }>();
  return {
    monotonic: () => now,
    wall: () => now,
    steady: () => now,
    random: () => 0.5,
    get waiting() {
      return waiting.size;
    },
    delay(ms, signal) {
      return new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const entry = {
          at: now + ms,
          wake() {
            waiting.delete(entry);
            signal.removeEventListener('abort', entry.wake);
            resolve();
          },
        };
        waiting.add(entry);
        signal.addEventListener('abort', entry.wake, { once: true });
      });
    },
    after(ms, action) {
      const entry = {
        at: now + ms,
        wake() {
          planned.delete(entry);
          action();
        },
      };
      planned.add(entry);
      return () => void planned.delete(entry);
    },
    async advance(ms) {
      now += ms;
      for (const entry of [...waiting, ...planned]) if (entry.at <= now) entry.wake();
      await Promise.resolve();
      await Promise.resolve();
    },
  };
}
