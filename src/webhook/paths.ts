import { timingSafeEqual } from 'node:crypto';
import type { JsonObject } from '../kit/json.ts';
import { calledPaths } from './configuration.ts';

/** The paths at which a replica answers. */
export type Paths = ReturnType<typeof createPaths>;

/** How long a former path is still answered: API servers notice a change one after the other. */
const FORMER_MS = 30_000;
/** The path that is called if a configuration names none, as right after the manifest was applied. */
const UNNAMED = '/';

/** Creates the paths of a replica. `now`: monotonic, in milliseconds. */
export function createPaths(wanted: () => string | undefined, now: () => number) {
  /** The present and former paths of callers, and until when each is answered. */
  const called = new Map<string, number>();
  let current: readonly string[] | undefined;

  /** Compares a path with all that are served, so that the time does not say which one it is. Called for each review. */
  function isServed(path: string): boolean {
    const [own, at] = [wanted(), now()];
    const isOnlyPath = own !== undefined && (current === undefined || current.every((each) => each === own));
    let isFound = own !== undefined && isSame(path, own);
    if (!isOnlyPath) isFound = isSame(path, UNNAMED) || isFound;
    for (const [each, until] of called) if (each !== own && at <= until) isFound = isSame(path, each) || isFound;
    return isFound;
  }
  return {
    /** Returns the path that callers should use: from the configuration key, else from the Secret; undefined if there is neither. */
    wanted,
    /** Records the paths that the API server calls; undefined: there is no configuration. */
    saw(configuration: JsonObject | undefined): void {
      for (const [path, until] of called) if (until < now()) called.delete(path);
      for (const path of current ?? []) called.set(path, now() + FORMER_MS);
      current = calledPaths(configuration);
      for (const path of current) called.set(path, Number.POSITIVE_INFINITY);
    },
    /** Whether a request to this path is answered. Takes the same time for every wrong path of the same length. */
    isServed,
  };
}

/** A path has at most as many characters as bytes, so that the length alone, which is no secret, tells most wrong ones apart. */
function isSame(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}
