import type { Clock } from '../../kit/clock.ts';

/** The least time between two evictions of any pods. */
const PACE_MS = 10_000;
const WINDOW_MS = 10 * 60_000;
/** How many pods of one owner may be evicted within the window. If these did not help, more evictions will not help either. */
export const MOST_OF_OWNER = 3;

/**
 * Creates limits that keep evictions rare, so that a mistake of archaware cannot empty a cluster; at first there are no past
 * evictions.
 */
export function createEvictionLimits(clock: Clock) {
  const byOwner = new Map<string, number[]>();
  let last = Number.NEGATIVE_INFINITY;
  return {
    /** Returns how long the next eviction of this owner's pods must wait, and by which limit; undefined: it may go ahead. */
    check(owner: string): { readonly of: 'all' | 'owner'; readonly waitMs: number } | undefined {
      const now = clock.monotonic();
      const times = byOwner.get(owner) ?? [];
      const oldest = times[times.length - MOST_OF_OWNER];
      if (oldest !== undefined && now - oldest < WINDOW_MS) return { of: 'owner', waitMs: WINDOW_MS - (now - oldest) };
      const waitMs = PACE_MS - (now - last);
      return waitMs > 0 ? { of: 'all', waitMs } : undefined;
    },
    evicted(owner: string): void {
      const now = clock.monotonic();
      last = now;
      // Owners without an eviction in the window are forgotten. At one eviction in ten seconds the map stays small.
      for (const [other, times] of byOwner) if (now - (times.at(-1) ?? 0) >= WINDOW_MS) byOwner.delete(other);
      byOwner.set(owner, [...(byOwner.get(owner) ?? []), now].slice(-MOST_OF_OWNER));
    },
  };
}
