import { setTimeout as wait } from 'node:timers/promises';

/** Time and chance, passed to everything that waits, so that tests hold both in their hands. */
export type Clock = {
  /** Monotonic milliseconds: it never goes back, and may stand still while a machine sleeps. */
  monotonic(): number;
  /** Milliseconds since the epoch by the wall clock. */
  wall(): number;
  /** The wall clock as it stood when the process began, and as time has passed since: setting the clock does not move it. */
  steady(): number;
  /** Waits; ends early, without throwing, when the signal aborts. */
  delay(ms: number, signal: AbortSignal): Promise<void>;
  /** Calls `action` once after this time; the function that it gives cancels that. */
  after(ms: number, action: () => void): () => void;
  /** From 0 to 1, as `Math.random`. */
  random(): number;
};

/** The machine's own time and chance. */
export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  steady: () => performance.timeOrigin + performance.now(),
  delay: (ms, signal) => wait(Math.max(0, ms), undefined, { signal }).catch(() => undefined),
  after(ms, action) {
    const timer = setTimeout(action, Math.max(0, ms));
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

/** Exponential backoff with ±20 % of jitter: `base` doubled for each attempt before this one, at most `cap`. Milliseconds. */
export function backoff(attempt: number, base: number, cap: number, random: () => number): number {
  const plain = Math.min(cap, base * 2 ** Math.min(attempt, 30));
  return plain * (0.8 + 0.4 * random());
}
