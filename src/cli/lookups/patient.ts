import { setMaxListeners } from 'node:events';
import { onAbort, untilAborted } from '../../kit/abort.ts';
import { backoff, type Clock } from '../../kit/clock.ts';
import { type Access, accessKey } from '../../oci/credentials/keyring.ts';
import { createNamespaceTurns, type NamespaceTurns } from '../../oci/credentials/program-turns.ts';
import { ImageError, type ImageErrorCode } from '../../oci/errors.ts';
import { createAskers } from '../../oci/lookup/askers.ts';
import { canonicalName } from '../../oci/reference.ts';
import type { TagResolver } from '../../oci/resolver.ts';

/** An image that waits for its registry, and how far all lookups are. */
export type Waiting = {
  /** host[:port]; the image where no registry was at fault. */
  readonly registry: string;
  readonly code: ImageErrorCode;
  readonly againInMs: number;
  /** Lookups that have ended, and all that were asked for. */
  readonly done: number;
  readonly total: number;
};

type PatienceOptions = {
  readonly clock: Clock;
  /** Milliseconds from the first failure that may pass; after it nothing is tried again. 0: every image is asked for once. */
  readonly limitMs: number;
  readonly onWait: (waiting: Waiting) => void;
  readonly signal: AbortSignal;
};

/** Lookups that are handed to the resolver at once, for each registry. Those that wait for a later try do not count. */
const AT_ONCE = 64;
/** Milliseconds between two tries where the registry names no time. */
const FIRST = 1_000;
const LONGEST = 15_000;
/** The least wait where a registry names a time, and a spread, so that not all images come back in one moment. Milliseconds. */
const LEAST = 100;
const SPREAD = 400;
/**
 * A registry to which no connection is made, or that stays silent, is given up after this time. A name that only the cluster's DNS
 * knows, or an address behind a firewall, does not come back while somebody waits. Milliseconds.
 */
const UNREACHABLE = 10_000;

/**
 * Creates a resolver that tries again what failed for the moment, as the controller does: after the time that the registry asks
 * for, else with backoff, and all images together no longer than the limit. Commands use it, because they have no later run.
 *
 * An image counts as looked up (`onSettled`, `pending`, `look`) only when it is not tried again.
 */
export function createPatientResolver(resolver: TagResolver, options: PatienceOptions): TagResolver {
  const { clock, limitMs, onWait, signal } = options;
  /** The places at each registry. */
  const places = new Map<string, NamespaceTurns>();
  /** Aborts when nothing may be tried again. */
  const over = new AbortController();
  for (const each of [signal, over.signal]) setMaxListeners(0, each);
  onAbort(signal, () => over.abort(signal.reason));
  let endsAt: number | undefined;
  /** When a registry was first found unreachable, by host[:port]. */
  const unreachable = new Map<string, number>();
  /** Registries that have answered once. One that stays silent for a moment is asked again. */
  const answering = new Set<string>();
  const counts = { done: 0, total: 0 };
  /** The lookups that `look` has asked for, by image and access; and those of them that have not ended. */
  const asked = new Set<string>();
  const running = new Set<string>();
  const listeners: ((canonical: string) => void)[] = [];

  /** Returns how long to wait before the next try; undefined if there is none. */
  function waitAfter(error: ImageError, failures: number): number | undefined {
    const now = clock.steady();
    const givenUp = givenUpAt(error, now);
    if (!error.temporary || limitMs === 0) return undefined;
    if (endsAt === undefined) {
      endsAt = now + limitMs;
      onAbort(
        signal,
        clock.after(limitMs, () => over.abort()),
      );
    }
    const wait =
      error.retryAfterMs === undefined
        ? backoff(failures, FIRST, LONGEST, clock.random)
        : Math.max(error.retryAfterMs, LEAST) + SPREAD * clock.random();
    return now + wait < Math.min(endsAt, givenUp) ? wait : undefined;
  }

  /** Returns when the registry of a failure is given up. */
  function givenUpAt({ endpoint = '', isUnanswered, isUnasked, code }: ImageError, now: number): number {
    if (isUnanswered) {
      // Its silence has lasted that long already.
      const began = code === 'timeout' && !answering.has(endpoint) ? now - UNREACHABLE : now;
      if (!unreachable.has(endpoint)) unreachable.set(endpoint, began);
    } else if (!isUnasked) answered(endpoint);
    return (unreachable.get(endpoint) ?? Number.POSITIVE_INFINITY) + UNREACHABLE;
  }

  function answered(registry: string): void {
    unreachable.delete(registry);
    answering.add(registry);
  }

  async function patiently<T>(
    image: string,
    until: AbortSignal,
    attempt: (until: AbortSignal) => Promise<T>,
  ): Promise<T> {
    counts.total += 1;
    const host = canonicalName(image).split('/', 1)[0] ?? '';
    const place = places.get(host) ?? createNamespaceTurns(AT_ONCE);
    places.set(host, place);
    const ask = (limit: AbortSignal) => place.take(createAskers(''), limit, () => untilAborted(attempt(until), limit));
    try {
      let last: ImageError | undefined;
      for (let failures = 0; ; failures += 1) {
        try {
          const found = await (last === undefined ? ask(until) : again(ask, until, last));
          answered(last?.endpoint ?? host);
          return found;
        } catch (error) {
          if (!(error instanceof ImageError) || error === last) throw error;
          const wait = waitAfter(error, failures);
          if (wait === undefined) throw error;
          last = error;
          onWait({ registry: error.endpoint ?? image, code: error.code, againInMs: wait, ...counts });
          await clock.delay(wait, until);
          until.throwIfAborted();
        }
      }
    } finally {
      counts.done += 1;
    }
  }

  /** A later try ends with the limit, whatever the registry does; the last failure stands then. */
  async function again<T>(ask: (limit: AbortSignal) => Promise<T>, until: AbortSignal, last: ImageError): Promise<T> {
    try {
      return await ask(over.signal);
    } catch (error) {
      until.throwIfAborted();
      throw over.signal.aborted && !(error instanceof ImageError) ? last : error;
    }
  }

  const keyOf = (image: string, access: Access) => `${image} ${accessKey(access)}`;

  const resolve = (image: string, access: Access, until: AbortSignal) =>
    patiently(image, until, (signal) => resolver.resolve(image, access, signal));

  /** Looks an image up in the background. */
  function start(key: string, image: string, access: Access): void {
    asked.add(key);
    running.add(key);
    resolve(image, access, signal)
      .catch(() => undefined)
      .finally(() => {
        running.delete(key);
        if (!signal.aborted) for (const listener of listeners) listener(canonicalName(image));
      });
  }

  return {
    ...resolver,
    resolve,
    reach: (image, access, until, work) =>
      patiently(image, until, (signal) => resolver.reach(image, access, signal, work)),
    tags: (image, access, until) => patiently(image, until, (signal) => resolver.tags(image, access, signal)),
    look(image, access, mayStart = () => true) {
      const key = keyOf(image, access);
      const found = resolver.look(image, access, () => false);
      if (found.kind === 'known' && !found.isStale) return found;
      if (!asked.has(key) && !signal.aborted && mayStart()) start(key, image, access);
      if (found.kind === 'known') return found;
      if (found.kind === 'pending' || running.has(key)) return { kind: 'pending', isPlanned: true };
      // How long this command has tried says nothing about how long the controller has.
      return { ...found, isPlanned: true, sinceMs: 0 };
    },
    onSettled: (listener) => void listeners.push(listener),
    pending: () => running.size,
  };
}
