import { ImageError } from '../errors.ts';

/** An image whose last lookup failed; times in milliseconds on the clock `now`. */
export type Failure = {
  readonly error: ImageError;
  /** The first failure since the last success in this process. */
  readonly firstFailedAt: number;
  /** The image is not looked up again before this time. */
  readonly retryAt: number;
  readonly attempts: number;
};

export type FailuresOptions = {
  readonly maxEntries: number;
  readonly now: () => number;
  /** From 0 to 1, excluding 1. */
  readonly random: () => number;
};

/**
 * Remembers failures and spaces the retries: after the time that the registry asks for, or after 1 s, doubling up to 5
 * min, ±20 %.
 */
export type Failures = {
  get(key: string): Failure | undefined;
  /**
   * Adds a failure. `ttlMs`: the least time for which a failure is remembered that does not pass by itself.
   * `namespace`: the namespace for which the image was looked up.
   */
  add(key: string, error: ImageError, ttlMs: number, namespace: string): Failure;
  remove(key: string): void;
  /** Makes a failed image due now. */
  forgive(key: string): void;
  keys(): string[];
  /**
   * The number of failures that are still wanted: one that no caller asks for any more is not retried when it is due.
   */
  count(): number;
};

const FIRST = 1000;
const LONGEST = 300_000;

/**
 * Creates the memory. If there are too many failures, it forgets the oldest one of the namespace that has the most. A
 * forgotten failure starts over, and so does the time after which `images.unresolvable` applies.
 */
export function createFailures({ maxEntries, now, random }: FailuresOptions): Failures {
  const failures = new Map<string, Failure & { readonly namespace: string }>();
  /** The keys of each namespace, oldest first. */
  const owned = new Map<string, Set<string>>();

  function forget(key: string): void {
    const { namespace = '' } = failures.get(key) ?? {};
    failures.delete(key);
    const keys = owned.get(namespace);
    keys?.delete(key);
    if (keys?.size === 0) owned.delete(namespace);
  }

  function makeRoom(): void {
    if (failures.size <= maxEntries) return;
    const most = [...owned.values()].reduce((one, other) => (other.size > one.size ? other : one));
    const [oldest] = most;
    if (oldest !== undefined) forget(oldest);
  }

  return {
    get: (key) => failures.get(key),
    add(key, error, ttlMs, namespace) {
      const before = failures.get(key);
      const attempts = (before?.attempts ?? 0) + 1;
      const backoff = Math.min(FIRST * 2 ** Math.min(attempts - 1, 20), LONGEST) * (0.8 + 0.4 * random());
      // If the registry names a time, the retry comes then, with some jitter so that not all come at once. A longer
      // wait would help nobody.
      const requested =
        error.retryAfterMs === undefined ? undefined : Math.max(error.retryAfterMs, FIRST) + FIRST * random();
      const wait = Math.max(requested ?? backoff, error.temporary ? 0 : ttlMs);
      const failure = {
        namespace,
        error,
        firstFailedAt: before?.firstFailedAt ?? now(),
        retryAt: now() + wait,
        attempts,
      };
      forget(key);
      failures.set(key, failure);
      owned.set(namespace, (owned.get(namespace) ?? new Set()).add(key));
      makeRoom();
      return failure;
    },
    remove: forget,
    forgive(key) {
      const failure = failures.get(key);
      if (failure !== undefined) failures.set(key, { ...failure, retryAt: now() });
    },
    keys: () => [...failures.keys()],
    count() {
      const oldest = now() - LONGEST;
      let count = 0;
      for (const failure of failures.values()) if (failure.retryAt > oldest) count += 1;
      return count;
    },
  };
}

/** The failure of a lookup whose pull secrets could not be read in time. */
export function unreadable(): ImageError {
  return new ImageError('the pull secrets could not be read from the API server in time', {
    code: 'unavailable',
    temporary: true,
  });
}

/** The failure of a lookup that ended with a bug in the program. */
export function unexpected(error: unknown): ImageError {
  return new ImageError('the lookup failed because of an error in archaware; please report it', {
    code: 'unavailable',
    temporary: true,
    cause: error,
  });
}
