import type { Clock } from '../../kit/clock.ts';

/** Keeps evictions rare: whatever we get wrong must not empty a cluster. */
export type EvictionLimits = {
  /** How long the next eviction of a pod of this owner has to wait, and whose limit it is; undefined: it need not. */
  check(owner: string): { readonly of: 'all' | 'owner'; readonly waitMs: number } | undefined;
  /** A pod of this owner (its uid) was evicted. */
  evicted(owner: string): void;
};

/** Between two evictions of whatever pods. */
const PACE_MS = 10_000;
const WINDOW_MS = 10 * 60_000;
/** Of one owner in the window: when that has not helped, more of the same will not. */
export const MOST_OF_OWNER = 3;

/** Creates the memory of it. */
export function createEvictionLimits(clock: Clock): EvictionLimits {
  const byOwner = new Map<string, number[]>();
  let last = Number.NEGATIVE_INFINITY;
  return {
    check(owner) {
      const now = clock.monotonic();
      const times = byOwner.get(owner) ?? [];
      const oldest = times[times.length - MOST_OF_OWNER];
      if (oldest !== undefined && now - oldest < WINDOW_MS) return { of: 'owner', waitMs: WINDOW_MS - (now - oldest) };
      const waitMs = PACE_MS - (now - last);
      return waitMs > 0 ? { of: 'all', waitMs } : undefined;
    },
    evicted(owner) {
      const now = clock.monotonic();
      last = now;
      // At one eviction in ten seconds this is short; owners that were left in peace are forgotten.
      for (const [other, times] of byOwner) if (now - (times.at(-1) ?? 0) >= WINDOW_MS) byOwner.delete(other);
      byOwner.set(owner, [...(byOwner.get(owner) ?? []), now].slice(-MOST_OF_OWNER));
    },
  };
}
