import { backoff } from '../../kit/clock.ts';
import type { ImageError } from '../errors.ts';

/** An image whose last lookup failed; times in milliseconds on the clock `now`. */
type Failure = {
  readonly error: ImageError;
  /** The first failure since the last success in this process. */
  readonly firstFailedAt: number;
  /** The image is not looked up again before this time. */
  readonly retryAt: number;
  /** The tries that failed, without those after which the registry, or its failure, says when to try again. */
  readonly attempts: number;
  /** The key of the place whose first answer ends the wait. */
  readonly waitsFor: string | undefined;
};

export type FailuresOptions = {
  readonly maxEntries: number;
  readonly now: () => number;
  /** From 0 to 1, excluding 1. */
  readonly random: () => number;
};

/**
 * Remembers failures and spaces the retries: after the time that the registry asks for, or its failure (lookup/health.ts); after
 * an answer about the image itself after 1 s, doubling up to 5 min, ±20 %.
 */
export type Failures = ReturnType<typeof createFailures>;

const MOST_BYTES = 16 * 1024 * 1024;
/** Bytes of a failure, without its texts: an error remembers where it was made. */
const ENTRY = 512;

const FIRST = 1000;
const LONGEST = 300_000;

/**
 * Creates the memory. If there are too many failures, or their texts take too many bytes, it forgets the oldest one of the
 * namespace that has the most. A forgotten failure starts over, and so does the time after which `images.unresolvable` applies.
 */
export function createFailures({ maxEntries, now, random }: FailuresOptions) {
  const failures = new Map<string, Failure & { readonly namespace: string }>();
  /** The keys of each namespace, oldest first, and the bytes of their failures. */
  const owned = new Map<string, { readonly keys: Set<string>; bytes: number }>();
  /** By the place for which they wait. */
  const waiting = new Map<string, Set<string>>();
  let bytes = 0;

  function forget(key: string): void {
    const failure = failures.get(key);
    if (failure === undefined) return;
    const { namespace, waitsFor = '', error } = failure;
    failures.delete(key);
    waiting.get(waitsFor)?.delete(key);
    if (waiting.get(waitsFor)?.size === 0) waiting.delete(waitsFor);
    count(namespace, key, -bytesOf(key, error));
    owned.get(namespace)?.keys.delete(key);
    if (owned.get(namespace)?.keys.size === 0) owned.delete(namespace);
  }

  function count(namespace: string, key: string, more: number): void {
    const own = owned.get(namespace) ?? { keys: new Set<string>(), bytes: 0 };
    owned.set(namespace, own);
    own.keys.add(key);
    own.bytes += more;
    bytes += more;
  }

  function makeRoom(): void {
    while (failures.size > maxEntries || bytes > MOST_BYTES) {
      const most = [...owned.values()].reduce((one, other) => (other.bytes > one.bytes ? other : one));
      const [oldest] = most.keys;
      if (oldest === undefined) return;
      forget(oldest);
    }
  }

  return {
    get: (key: string): Failure | undefined => failures.get(key),
    /**
     * Adds a failure. If the image was not asked for, the failure of the last request for it is kept. `ttlMs`: the least time for which a failure is remembered that does not pass by itself.
     * `namespace`: the namespace for which the image was looked up.
     */
    add(key: string, error: ImageError, ttlMs: number, namespace: string): Failure {
      const before = failures.get(key);
      const { waitsFor } = error;
      const attempts = (before?.attempts ?? 0) + (error.retryAfterMs === undefined ? 1 : 0);
      // If the registry names a time, the retry comes then, with some jitter so that not all come at once. A longer
      // wait would help nobody.
      const requested =
        error.retryAfterMs === undefined ? undefined : Math.max(error.retryAfterMs, FIRST) + FIRST * random();
      const wait = Math.max(requested ?? backoff(attempts - 1, FIRST, LONGEST, random), error.temporary ? 0 : ttlMs);
      // What the registry answered about the image itself says more than what it answers about others.
      const isKept = error.isUnasked && before !== undefined && !before.error.isUnasked;
      const failure = {
        namespace,
        error: isKept ? before.error : error,
        firstFailedAt: before?.firstFailedAt ?? now(),
        retryAt: now() + wait,
        attempts,
        waitsFor,
      };
      forget(key);
      failures.set(key, failure);
      if (waitsFor !== undefined) waiting.set(waitsFor, (waiting.get(waitsFor) ?? new Set()).add(key));
      count(namespace, key, bytesOf(key, failure.error));
      makeRoom();
      return failure;
    },
    remove: forget,
    /** Makes a failed image due now. */
    forgive(key: string): void {
      const failure = failures.get(key);
      if (failure !== undefined) failures.set(key, { ...failure, retryAt: now() });
    },
    keys: (): string[] => [...failures.keys()],
    /** Returns the images that wait for the first answer of a place, without those that are due: they are asked for already. */
    waitingFor: (place: string): readonly string[] =>
      [...(waiting.get(place) ?? [])].filter((key) => (failures.get(key)?.retryAt ?? 0) > now()),
    /**
     * The number of failures that are still wanted: one that no caller asks for any more is not retried when it is due.
     */
    count(): number {
      const oldest = now() - LONGEST;
      return [...failures.values()].filter(({ retryAt }) => retryAt > oldest).length;
    },
  };
}

function bytesOf(key: string, { message }: ImageError): number {
  return ENTRY + 2 * key.length + message.length;
}
