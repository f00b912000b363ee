import { LRUCache } from 'lru-cache';

export type AllowanceOptions = {
  /** So much may be taken at once, after a while without any. */
  readonly burst: number;
  /** So much comes back in a second. */
  readonly perSecond: number;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
};

/** So many keys are remembered. The one that was not used for longest is forgotten: it has its whole burst again. */
const MAX_KEYS = 10_000;

/** Creates an allowance for each key. The function says whether one more may be taken for a key, and counts it then. */
export function createAllowance({ burst, perSecond, now }: AllowanceOptions): (key: string) => boolean {
  const taken = new LRUCache<string, { readonly count: number; readonly at: number }>({ max: MAX_KEYS });
  return (key) => {
    const at = now();
    const before = taken.get(key);
    const count = Math.max(0, (before?.count ?? 0) - ((at - (before?.at ?? at)) / 1000) * perSecond);
    if (count + 1 > burst) return false;
    taken.set(key, { count: count + 1, at });
    return true;
  };
}
