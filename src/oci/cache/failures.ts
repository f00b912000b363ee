import { ImageError } from '../errors.ts';

/** An image whose last look-up failed; times in milliseconds, as of `now`. */
export type Failure = {
  readonly error: ImageError;
  /** The first failure since the last success in this process. */
  readonly firstFailedAt: number;
  /** Not asked again before this. */
  readonly retryAt: number;
  readonly attempts: number;
};

export type FailuresOptions = {
  readonly maxEntries: number;
  readonly now: () => number;
  /** From 0 to 1, 1 excluded. */
  readonly random: () => number;
};

/** Remembers failures, and spaces the tries: when we were told to, else 1 s, doubling up to 5 min, ±20%. */
export type Failures = {
  get(key: string): Failure | undefined;
  /** `ttlMs`: a failure that does not pass by itself is remembered for so long at least. `namespace`: on whose behalf it was asked. */
  add(key: string, error: ImageError, ttlMs: number, namespace: string): Failure;
  remove(key: string): void;
  /** Makes one due now. */
  forgive(key: string): void;
  keys(): string[];
  /** How many are still wanted: those that nobody asks for any more are not tried again when they are due. */
  count(): number;
};

const FIRST = 1000;
const LONGEST = 300_000;

/**
 * Creates it. Where there are too many, the oldest one goes of the namespace that has the most: one that is forgotten begins again,
 * and with it the time after which `images.unresolvable` applies.
 */
export function createFailures({ maxEntries, now, random }: FailuresOptions): Failures {
  const failures = new Map<string, Failure & { readonly namespace: string }>();
  /** The keys of each namespace, the oldest first. */
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
      // Told when to come again we come then, and not all at once: waiting longer would help nobody.
      const told =
        error.retryAfterMs === undefined ? undefined : Math.max(error.retryAfterMs, FIRST) + FIRST * random();
      const wait = Math.max(told ?? backoff, error.temporary ? 0 : ttlMs);
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

/** The failure of a lookup whose pull secrets are not there in time. */
export function unreadable(): ImageError {
  return new ImageError('the pull secrets could not be read from the API server in time', {
    code: 'unavailable',
    temporary: true,
  });
}

/** The failure of a lookup that ended with an error of the program itself. */
export function unexpected(error: unknown): ImageError {
  return new ImageError('the look-up failed for a reason of our own; please report it', {
    code: 'unavailable',
    temporary: true,
    cause: error,
  });
}
