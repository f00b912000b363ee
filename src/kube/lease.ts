import { onAbort } from '../kit/abort.ts';
import type { Clock } from '../kit/clock.ts';
import { type JsonObject, numberAt, objectAt, stringAt, stringsAt } from '../kit/json.ts';
import { APP_LABEL, DEPLOYMENT, FIELD_MANAGER, RELEASES_FAIL_ANNOTATION } from '../names.ts';
import type { ApiClient } from './api-client.ts';
import { ApiError } from './errors.ts';
import { find } from './read.ts';

export type LeaseOptions = {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
  /** The name of this holder; unique for each process. */
  readonly identity: string;
  readonly durationMs: number;
  readonly clock: Clock;
  /** A failed attempt to take or renew the Lease; another attempt follows. */
  readonly onError?: (error: unknown) => void;
  /** Whether this replica, if it leads, cannot release pods. The Lease says so to the others. */
  readonly cannotRelease?: () => boolean;
  /** The server has answered an attempt, after at least one that it did not answer: other connections may be dead too. */
  readonly onAnswered?: (() => void) | undefined;
};

/**
 * A `coordination.k8s.io/v1` Lease that one replica holds at a time. The API server does not fence writes by it: ask
 * `mayWrite` before every write.
 */
export type Lease = ReturnType<typeof createLease>;

/** How an attempt to take the lease ended. */
export type LeaseAttempt =
  | { readonly held: true }
  | { readonly held: false; readonly holder: string; readonly alive: boolean };

type ObservedLease = {
  readonly fingerprint: string;
  readonly at: number;
  readonly changes: number;
  readonly holder: string;
  /** The holder before this record. */
  readonly before: string;
  readonly heldMs: number;
  readonly canRelease: boolean;
};

/** No host name contains a colon, so no replica has such an identity. */
const CLEANER = 'clean:';

/** Creates a holder for the Lease; nothing is sent before `acquire` or `tryAcquire`. */
export function createLease(options: LeaseOptions) {
  const { client, namespace, name, identity, durationMs, clock, onError, onAnswered, cannotRelease } = options;
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const path = `${collection}/${name}?fieldManager=${FIELD_MANAGER}`;
  const retryMs = durationMs / 7.5;
  const renewMs = (durationMs * 2) / 3;
  let renewed: { monotonic: number; wall: number } | undefined;
  let observed: ObservedLease | undefined;
  /** When this process released the Lease. */
  let released: number | undefined;
  /** Whether this process ever tried to take the Lease. */
  let asked = false;
  let firstLook: number | undefined;
  let isIntroduced = false;
  /** Whether the last attempt got no answer at all. */
  let isUnanswered = false;

  const stamp = () => ({ monotonic: clock.monotonic(), wall: clock.wall() });
  // The monotonic clock stops while the machine is suspended, and a correction moves the wall clock: the larger age
  // counts.
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
      // By this label, `clean` finds the Lease in any namespace and under any name.
      metadata: {
        ...{ ...metadata, name, namespace, labels: { ...stringsAt(metadata, 'labels'), [APP_LABEL]: DEPLOYMENT } },
        annotations: marked(stringsAt(metadata, 'annotations'), cannotRelease?.() === true),
      },
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
    return find(client, `${collection}/${name}`, signal);
  }

  /**
   * Whether the holder was silent for its whole duration, counted from when this process saw the record change. The
   * clocks of two machines are never compared.
   */
  function expired(lease: JsonObject): boolean {
    const spec = objectAt(lease, 'spec');
    const fingerprint = JSON.stringify([spec.holderIdentity, spec.renewTime, spec.leaseTransitions]);
    const holder = stringAt(spec, 'holderIdentity') ?? '';
    const heldMs = (numberAt(spec, 'leaseDurationSeconds') ?? durationMs / 1000) * 1000;
    if (observed?.fingerprint !== fingerprint) {
      const [changes, before] = [(observed?.changes ?? -1) + 1, observed?.holder ?? ''];
      const isMarked = stringsAt(objectAt(lease, 'metadata'), 'annotations')?.[RELEASES_FAIL_ANNOTATION] !== undefined;
      observed = { fingerprint, at: clock.monotonic(), changes, holder, before, heldMs, canRelease: !isMarked };
    }
    return clock.monotonic() - observed.at > heldMs;
  }

  const mayWrite = () => age() < renewMs;

  function hasLeader(): boolean {
    if (mayWrite()) return true;
    const now = clock.monotonic();
    if (released !== undefined && now - released < 2 * retryMs) return true;
    if (observed === undefined || isCleaner(observed.holder)) return false;
    const { holder, before, at, changes, heldMs } = observed;
    if (holder === '') return before !== '' && !isCleaner(before) && now - at < 2 * retryMs;
    // A record that was seen only once may be that of a holder that has died.
    return changes > 0 && now - at <= heldMs;
  }

  async function attempt(signal: AbortSignal): Promise<'held' | 'taken' | 'failed' | 'late'> {
    // An attempt that hangs must end before the Lease does.
    const late = new AbortController();
    const cancel = clock.after(Math.round(renewMs / 2), () => late.abort(new Error('no answer in time')));
    const forget = onAbort(signal, () => late.abort(signal.reason));
    try {
      const { held } = await tryAcquire(late.signal);
      if (isUnanswered) onAnswered?.();
      isUnanswered = false;
      return held ? 'held' : 'taken';
    } catch (error) {
      isUnanswered ||= !(error instanceof ApiError);
      if (!signal.aborted) onError?.(error);
      return late.signal.aborted ? 'late' : 'failed';
    } finally {
      cancel();
      forget();
    }
  }

  /** Waits until this replica holds the Lease; false if the signal aborts before. */
  async function acquire(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const ended = await attempt(signal);
      if (ended === 'held') return true;
      // A late attempt has taken longer than the wait. Its connection is gone, and the next one gets another.
      if (ended !== 'late') await clock.delay(retryMs * (0.9 + 0.2 * clock.random()), signal);
    }
    return false;
  }

  /** Renews the Lease until the signal aborts or the Lease is lost. */
  async function keep(signal: AbortSignal): Promise<void> {
    let last: Awaited<ReturnType<typeof attempt>> = 'held';
    while (!signal.aborted) {
      if (last !== 'late') await clock.delay(retryMs, signal);
      if (signal.aborted) return;
      // After this age another replica may hold the Lease. It counts as lost even if nobody took it.
      if (age() >= renewMs) return;
      last = await attempt(signal);
      if (last === 'taken') {
        renewed = undefined;
        return;
      }
    }
  }

  return {
    /**
     * Makes one attempt. Returns whether this replica holds the Lease now; if not, who holds it, and whether that holder
     * was seen renewing it.
     */
    tryAcquire,
    /** Whether a write may be sent: the last successful renewal was sent less than two thirds of the duration ago. */
    mayWrite,
    /**
     * Whether a leader holds the Lease now: this replica, or another one that was seen renewing it. Also true for two
     * retries after a Lease was released, by this replica or by another that was seen: within that time a replica takes over.
     */
    hasLeader,
    /**
     * Whether the leader can release pods, as far as it says. Whoever may write the Lease could say otherwise, and so stop the gates: no
     * more than by taking the Lease itself.
     */
    canRelease: (): boolean => (mayWrite() ? cannotRelease?.() !== true : observed?.canRelease !== false),
    /**
     * Whether there was enough time to see a live leader: `hasLeader` was true once, or the Lease was watched for three
     * retries.
     */
    hasSeenLeader(): boolean {
      isIntroduced ||= hasLeader() || (firstLook !== undefined && clock.monotonic() - firstLook > 3 * retryMs);
      return isIntroduced;
    },
    /** Keeps reading who holds the Lease, for `hasLeader`, without taking it, until the signal aborts. */
    async follow(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        try {
          expired((await read(signal)) ?? {});
        } catch (error) {
          if (!signal.aborted) onError?.(error);
        }
        await clock.delay(retryMs, signal);
      }
    },
    acquire,
    keep,
    /**
     * Runs a `term` each time that this replica holds the Lease, until the signal aborts. The Lease is held until the writes under way
     * have ended. `onLost`: called if the Lease was lost during a term.
     */
    async lead(term: (over: AbortSignal) => Promise<void>, signal: AbortSignal, onLost: () => void): Promise<void> {
      while (await acquire(signal)) {
        const over = new AbortController();
        const ended = new AbortController();
        const keeping = keep(ended.signal).then(() => over.abort());
        await term(over.signal);
        ended.abort();
        await keeping;
        if (signal.aborted) return;
        onLost();
      }
    },
    /** Releases the Lease, so that another replica need not wait. Call it when no write is under way any more. */
    async release(signal: AbortSignal): Promise<void> {
      renewed = undefined;
      // An attempt without an answer may have taken the Lease. Without a release the next leader would wait for it in
      // vain.
      if (!asked) return;
      const current = await read(signal);
      if (current === undefined || stringAt(objectAt(current, 'spec'), 'holderIdentity') !== identity) return;
      // The API server refuses a duration of 0. With one second, the next replica can take over at once.
      const spec = { ...objectAt(current, 'spec'), holderIdentity: '', leaseDurationSeconds: 1 };
      await client.request('update', path, { body: { ...current, spec }, signal });
      released = clock.monotonic();
    },
    /**
     * Deletes the Lease, whether or not it was released, unless another replica has taken it meanwhile. For the last process that
     * uses it.
     */
    async remove(signal: AbortSignal): Promise<void> {
      renewed = undefined;
      const current = await read(signal);
      if (current === undefined) return;
      const holder = stringAt(objectAt(current, 'spec'), 'holderIdentity') ?? '';
      if (holder !== '' && holder !== identity) return;
      const { uid, resourceVersion } = objectAt(current, 'metadata');
      await client.request('delete', `${collection}/${name}`, {
        body: { preconditions: { uid, resourceVersion } },
        signal,
      });
    },
  };
}

/** Returns the annotations of the Lease with the mark that pods cannot be released, or without it. */
function marked(annotations: Readonly<Record<string, string>> = {}, isMarked: boolean): Record<string, string> {
  const others = Object.entries(annotations).filter(([name]) => name !== RELEASES_FAIL_ANNOTATION);
  return { ...Object.fromEntries(others), ...(isMarked ? { [RELEASES_FAIL_ANNOTATION]: 'true' } : {}) };
}

/** The identity of a `clean` process: while it holds the Lease, no replica leads. */
export function cleanerIdentity(name: string): string {
  return `${CLEANER}${name}`;
}

function isCleaner(holder: string): boolean {
  return holder.startsWith(CLEANER);
}

/** Formats a time as the API server's MicroTime: six digits after the second. */
export function microTime(wall: number): string {
  return new Date(wall).toISOString().replace('Z', '000Z');
}

/** Whether this replica leads, and whether any does. */
export type Leadership = Pick<
  Lease,
  'mayWrite' | 'hasLeader' | 'hasSeenLeader' | 'canRelease' | 'lead' | 'follow' | 'release'
>;

/** The leadership of the only replica, which needs no Lease. `signal`: aborts at SIGTERM; `end`: when everything ends. */
export function leadAlone(signal: AbortSignal, end: AbortSignal, canRelease: () => boolean): Leadership {
  const nothing = async () => {};
  return {
    mayWrite: () => true,
    hasLeader: () => !signal.aborted,
    hasSeenLeader: () => true,
    canRelease,
    lead: (term) => term(end),
    follow: nothing,
    release: nothing,
  };
}
