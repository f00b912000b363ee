import { onAbort } from '../kit/abort.ts';
import type { Clock } from '../kit/clock.ts';
import { isObject, type JsonObject, numberAt, objectAt, stringAt, stringsAt } from '../kit/json.ts';
import { APP_LABEL, DEPLOYMENT, FIELD_MANAGER } from '../names.ts';
import type { ApiClient } from './client.ts';
import { ApiError, isGone } from './errors.ts';

export type LeaseOptions = {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
  /** Who we are; unique for each process. */
  readonly identity: string;
  readonly durationMs: number;
  readonly clock: Clock;
  /** A failed attempt to take or renew it; the next one follows. */
  readonly onError?: (error: unknown) => void;
};

/** A `coordination.k8s.io/v1` Lease that one replica holds at a time. There is no fencing: ask `fresh` before every write. */
export type Lease = {
  /** Waits until the lease is ours; false where the signal aborted before. */
  acquire(signal: AbortSignal): Promise<boolean>;
  /** One attempt: whether it is ours now; otherwise who holds it, and whether we have seen that holder renew it. */
  tryAcquire(signal: AbortSignal): Promise<LeaseAttempt>;
  /** Renews it until the signal aborts or it is lost. */
  keep(signal: AbortSignal): Promise<void>;
  /** Whether a write may be sent: the last successful renewal was sent less than two thirds of the duration ago. */
  fresh(): boolean;
  /**
   * Whether a leader holds it now: we, or another replica that we have seen renewing it. For two retries after we have
   * released it, or have seen that another replica did, too: within that time a replica takes it.
   */
  live(): boolean;
  /** Whether a leader that lives has been seen by now: it was `live` once, or it was looked at for three retries. */
  introduced(): boolean;
  /** Goes on looking who holds it, for `live`, without taking it; until the signal aborts. */
  follow(signal: AbortSignal): Promise<void>;
  /** Gives it up, so that another replica need not wait. Call when no write is under way any more. */
  release(signal: AbortSignal): Promise<void>;
  /** Gives it up, and deletes it with that where nobody else took it meanwhile: for who is the last. */
  remove(signal: AbortSignal): Promise<void>;
};

/** How an attempt to take the lease ended. */
export type LeaseAttempt =
  | { readonly held: true }
  | { readonly held: false; readonly holder: string; readonly alive: boolean };

type Observed = {
  readonly fingerprint: string;
  readonly at: number;
  readonly changes: number;
  readonly holder: string;
  /** Who held it before this record. */
  readonly before: string;
  readonly heldMs: number;
};

/** No host's name has a colon. */
const CLEANER = 'clean:';

/** Creates the lease's holder; nothing is sent before `acquire` or `tryAcquire`. */
export function createLease(options: LeaseOptions): Lease {
  const { client, namespace, name, identity, durationMs, clock, onError } = options;
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const path = `${collection}/${name}?fieldManager=${FIELD_MANAGER}`;
  const retryMs = durationMs / 7.5;
  const renewMs = (durationMs * 2) / 3;
  let renewed: { monotonic: number; wall: number } | undefined;
  let observed: Observed | undefined;
  /** When we gave it up. */
  let released: number | undefined;
  /** Whether it was ever asked for. */
  let asked = false;
  let firstLook: number | undefined;
  let isIntroduced = false;

  const stamp = () => ({ monotonic: clock.monotonic(), wall: clock.wall() });
  // A suspended machine stops the monotonic clock, a corrected one moves the wall clock: the larger age counts.
  const age = () =>
    renewed === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(clock.monotonic() - renewed.monotonic, clock.wall() - renewed.wall);

  async function tryAcquire(signal: AbortSignal): Promise<LeaseAttempt> {
    const sent = stamp();
    const current = await read(signal);
    const spec = objectAt(current ?? {}, 'spec');
    const holder = stringAt(spec, 'holderIdentity') ?? '';
    if (holder !== '' && holder !== identity && !expired(current ?? {})) {
      return { held: false, holder, alive: (observed?.changes ?? 0) > 0 };
    }
    const transitions = numberAt(spec, 'leaseTransitions') ?? 0;
    const now = microTime(clock.wall());
    const metadata = objectAt(current ?? {}, 'metadata');
    const next = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      // The label lets clean find it in whatever namespace and under whatever name.
      metadata: { ...metadata, name, namespace, labels: { ...stringsAt(metadata, 'labels'), [APP_LABEL]: DEPLOYMENT } },
      spec: {
        ...spec,
        holderIdentity: identity,
        leaseDurationSeconds: Math.max(1, Math.round(durationMs / 1000)),
        renewTime: now,
        acquireTime: holder === identity ? (stringAt(spec, 'acquireTime') ?? now) : now,
        leaseTransitions: holder === identity || current === undefined ? transitions : transitions + 1,
      },
    };
    asked = true;
    try {
      if (current === undefined) {
        await client.request('create', `${collection}?fieldManager=${FIELD_MANAGER}`, { body: next, signal });
      } else await client.request('update', path, { body: next, signal });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      return { held: false, holder: 'another replica', alive: true };
    }
    renewed = sent;
    return { held: true };
  }

  async function read(signal: AbortSignal): Promise<JsonObject | undefined> {
    firstLook ??= clock.monotonic();
    try {
      const lease = await client.request('get', `${collection}/${name}`, { signal });
      return isObject(lease) ? lease : undefined;
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  /** Whether the holder was silent for its duration, counted from when we saw the record change (no clock is compared). */
  function expired(lease: JsonObject): boolean {
    const spec = objectAt(lease, 'spec');
    const fingerprint = JSON.stringify([spec.holderIdentity, spec.renewTime, spec.leaseTransitions]);
    const holder = stringAt(spec, 'holderIdentity') ?? '';
    const heldMs = (numberAt(spec, 'leaseDurationSeconds') ?? durationMs / 1000) * 1000;
    if (observed?.fingerprint !== fingerprint) {
      const [changes, before] = [(observed?.changes ?? -1) + 1, observed?.holder ?? ''];
      observed = { fingerprint, at: clock.monotonic(), changes, holder, before, heldMs };
    }
    return clock.monotonic() - observed.at > heldMs;
  }

  function live(): boolean {
    if (age() < renewMs) return true;
    const now = clock.monotonic();
    if (released !== undefined && now - released < 2 * retryMs) return true;
    if (observed === undefined || isCleaner(observed.holder)) return false;
    const { holder, before, at, changes, heldMs } = observed;
    if (holder === '') return before !== '' && !isCleaner(before) && now - at < 2 * retryMs;
    // Seen for the first time it may be the record of one that has died.
    return changes > 0 && now - at <= heldMs;
  }

  async function attempt(signal: AbortSignal): Promise<'held' | 'taken' | 'failed'> {
    // An attempt that hangs must end before the lease does.
    const late = new AbortController();
    const cancel = clock.after(Math.round(renewMs / 2), () => late.abort(new Error('no answer in time')));
    const forget = onAbort(signal, () => late.abort(signal.reason));
    try {
      return (await tryAcquire(late.signal)).held ? 'held' : 'taken';
    } catch (error) {
      if (!signal.aborted) onError?.(error);
      return 'failed';
    } finally {
      cancel();
      forget();
    }
  }

  return {
    tryAcquire,
    fresh: () => age() < renewMs,
    live,
    introduced() {
      isIntroduced ||= live() || (firstLook !== undefined && clock.monotonic() - firstLook > 3 * retryMs);
      return isIntroduced;
    },
    async follow(signal) {
      while (!signal.aborted) {
        try {
          expired((await read(signal)) ?? {});
        } catch (error) {
          if (!signal.aborted) onError?.(error);
        }
        await clock.delay(retryMs, signal);
      }
    },
    async acquire(signal) {
      while (!signal.aborted) {
        if ((await attempt(signal)) === 'held') return true;
        await clock.delay(retryMs * (0.9 + 0.2 * clock.random()), signal);
      }
      return false;
    },
    async keep(signal) {
      while (!signal.aborted) {
        await clock.delay(retryMs, signal);
        if (signal.aborted) return;
        // Older than this, another replica may hold it: it is lost, even if nobody took it.
        if (age() >= renewMs) return;
        if ((await attempt(signal)) === 'taken') {
          renewed = undefined;
          return;
        }
      }
    },
    async release(signal) {
      renewed = undefined;
      // Also without an answer: one that was given up on may have taken it, and the next leader would wait for nobody.
      if (!asked) return;
      const current = await read(signal);
      if (current === undefined || stringAt(objectAt(current, 'spec'), 'holderIdentity') !== identity) return;
      // The API server refuses a duration of 0; one second lets the next replica in at once.
      const spec = { ...objectAt(current, 'spec'), holderIdentity: '', leaseDurationSeconds: 1 };
      await client.request('update', path, { body: { ...current, spec }, signal });
      released = clock.monotonic();
    },
    async remove(signal) {
      renewed = undefined;
      const current = await read(signal);
      if (current === undefined || stringAt(objectAt(current, 'spec'), 'holderIdentity') !== identity) return;
      const { uid, resourceVersion } = objectAt(current, 'metadata');
      await client.request('delete', `${collection}/${name}`, {
        body: { preconditions: { uid, resourceVersion } },
        signal,
      });
    },
  };
}

/** The identity of a `clean`, which leads nobody while it holds the lease. */
export function cleanerIdentity(name: string): string {
  return `${CLEANER}${name}`;
}

function isCleaner(holder: string): boolean {
  return holder.startsWith(CLEANER);
}

/** A time as the API server's MicroTime wants it: six digits after the second. */
export function microTime(wall: number): string {
  return new Date(wall).toISOString().replace('Z', '000Z');
}
