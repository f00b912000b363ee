import { setTimeout as wait } from 'node:timers/promises';

/** Time and randomness. Everything that waits gets a clock passed in, so that tests control both. */
export type Clock = {
  /** Monotonic milliseconds: it never goes back, and may stand still while a machine sleeps. */
  monotonic(): number;
  /** Milliseconds since the epoch by the wall clock. */
  wall(): number;
  /** The wall clock at the start of the process plus the time that has passed since: setting the system clock does not move it. */
  steady(): number;
  /** Waits; ends early, without throwing, when the signal aborts. */
  delay(ms: number, signal: AbortSignal): Promise<void>;
  /** Calls `action` once after this time. Returns a function that cancels the call. */
  after(ms: number, action: () => void): () => void;
  /** From 0 to 1, as `Math.random`. */
  random(): number;
};

/** The longest time of a timer, some 25 days. A longer one would end at once. */
const LONGEST_MS = 2 ** 31 - 1;

function timerMs(ms: number): number {
  return Math.min(Math.max(0, ms), LONGEST_MS);
}

/** The clock of the machine. */
export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  steady: () => performance.timeOrigin + performance.now(),
  delay: (ms, signal) => wait(timerMs(ms), undefined, { signal }).catch(() => undefined),
  after(ms, action) {
    const timer = setTimeout(action, timerMs(ms));
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

/** Returns `first` doubled for each attempt before this one (0 is the first), at most `longest`. */
export function doubled(attempt: number, first: number, longest: number): number {
  return Math.min(longest, first * 2 ** Math.min(attempt, 30));
}

/** Exponential backoff with ±20 % of jitter: `base` doubled for each attempt before this one, at most `cap`. Milliseconds. */
export function backoff(attempt: number, base: number, cap: number, random: () => number): number {
  return doubled(attempt, base, cap) * (0.8 + 0.4 * random());
}
