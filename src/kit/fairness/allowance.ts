import { createLru } from '../lru.ts';

export type AllowanceOptions = {
  /** The number that may be taken at once after a quiet time. */
  readonly burst: number;
  /** The number that comes back each second. */
  readonly perSecond: number;
  /** Milliseconds on a clock that never goes back. */
  readonly now: () => number;
};

/** The number of keys that are remembered. The key that was unused for longest is forgotten first, and then has its whole burst again. */
const MAX_KEYS = 10_000;

/** Creates an allowance for each key. The returned function takes one from the key's allowance; false if it is used up. */
export function createAllowance({ burst, perSecond, now }: AllowanceOptions): (key: string) => boolean {
  const taken = createLru<{ readonly count: number; readonly at: number }>(MAX_KEYS);
  return (key) => {
    const at = now();
    const before = taken.get(key);
    const count = Math.max(0, (before?.count ?? 0) - ((at - (before?.at ?? at)) / 1000) * perSecond);
    if (count + 1 > burst) return false;
    taken.set(key, { count: count + 1, at });
    return true;
  };
}
