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

/** What a holder of the Lease works with and knows. */
type LeaseState = LeaseOptions & {
  readonly collection: string;
  readonly retryMs: number;
  readonly renewMs: number;
  /** When the last successful attempt was sent. */
  renewed: { readonly monotonic: number; readonly wall: number } | undefined;
  observed: ObservedLease | undefined;
  /** When this process released the Lease. */
  released: number | undefined;
  /** Whether this process ever tried to take the Lease. */
  asked: boolean;
  firstLook: number | undefined;
  isIntroduced: boolean;
  /** Whether the last attempt got no answer at all. */
  isUnanswered: boolean;
};

/** Creates a holder for the Lease; nothing is sent before the first attempt. */
export function createLease(options: LeaseOptions) {
  const { namespace, durationMs, cannotRelease } = options;
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const lease: LeaseState = {
    ...{ ...options, collection, retryMs: durationMs / 7.5, renewMs: (durationMs * 2) / 3, renewed: undefined },
    ...{ observed: undefined, released: undefined, firstLook: undefined },
    ...{ asked: false, isIntroduced: false, isUnanswered: false },
  };
  return {
    /**
     * Makes one attempt. Returns whether this replica holds the Lease now; if not, who holds it, and whether that holder was seen
     * renewing it.
     */
    tryAcquire: (signal: AbortSignal): Promise<LeaseAttempt> => tryAcquire(lease, signal),
    /** Whether a write may be sent: the last successful renewal was sent less than two thirds of the duration ago. */
    mayWrite: (): boolean => mayWrite(lease),
    /**
     * Whether a leader holds the Lease now: this replica, or another one that was seen renewing it. Also true for two retries after a
     * Lease was released, by this replica or by another that was seen: within that time a replica takes over.
     */
    hasLeader: (): boolean => hasLeader(lease),
    /**
     * Whether the leader can release pods, as far as it says. Whoever may write the Lease could say otherwise, and so stop the gates: no
     * more than by taking the Lease itself.
     */
    canRelease: (): boolean => (mayWrite(lease) ? cannotRelease?.() !== true : lease.observed?.canRelease !== false),
    /** Whether there was enough time to see a live leader: `hasLeader` was true once, or the Lease was watched for three retries. */
    hasSeenLeader(): boolean {
      const { firstLook, clock, retryMs } = lease;
      lease.isIntroduced ||=
        hasLeader(lease) || (firstLook !== undefined && clock.monotonic() - firstLook > 3 * retryMs);
      return lease.isIntroduced;
    },
    follow: (signal: AbortSignal): Promise<void> => follow(lease, signal),
    acquire: (signal: AbortSignal): Promise<boolean> => acquire(lease, signal),
    keep: (signal: AbortSignal): Promise<void> => keep(lease, signal),
    lead: (term: LeaseTerm, signal: AbortSignal, onLost: () => void): Promise<void> =>
      lead(lease, term, signal, onLost),
    release: (signal: AbortSignal): Promise<void> => release(lease, signal),
    remove: (signal: AbortSignal): Promise<void> => remove(lease, signal),
  };
}

/** What a replica does while it holds the Lease. `over` aborts when the Lease is lost. */
type LeaseTerm = (over: AbortSignal) => Promise<void>;

/**
 * Runs a `term` each time that this replica holds the Lease, until the signal aborts. The Lease is held until the writes under way have
 * ended. `onLost`: called if the Lease was lost during a term.
 */
async function lead(lease: LeaseState, term: LeaseTerm, signal: AbortSignal, onLost: () => void): Promise<void> {
  while (await acquire(lease, signal)) {
    const over = new AbortController();
    const ended = new AbortController();
    const keeping = keep(lease, ended.signal).then(() => over.abort());
    await term(over.signal);
    ended.abort();
    await keeping;
    if (signal.aborted) return;
    onLost();
  }
}

/** Waits until this replica holds the Lease; false if the signal aborts before. */
async function acquire(lease: LeaseState, signal: AbortSignal): Promise<boolean> {
  const { clock, retryMs } = lease;
  while (!signal.aborted) {
    const ended = await attempt(lease, signal);
    if (ended === 'held') return true;
    // A late attempt has taken longer than the wait. Its connection is gone, and the next one gets another.
    if (ended !== 'late') await clock.delay(retryMs * (0.9 + 0.2 * clock.random()), signal);
  }
  return false;
}

/** Renews the Lease until the signal aborts or the Lease is lost. */
async function keep(lease: LeaseState, signal: AbortSignal): Promise<void> {
  let last: Awaited<ReturnType<typeof attempt>> = 'held';
  while (!signal.aborted) {
    if (last !== 'late') await lease.clock.delay(lease.retryMs, signal);
    // After this age another replica may hold the Lease. It counts as lost even if nobody took it.
    if (signal.aborted || !mayWrite(lease)) return;
    last = await attempt(lease, signal);
    if (last === 'taken') {
      lease.renewed = undefined;
      return;
    }
  }
}

async function attempt(lease: LeaseState, signal: AbortSignal): Promise<'held' | 'taken' | 'failed' | 'late'> {
  // An attempt that hangs must end before the Lease does.
  const late = new AbortController();
  const cancel = lease.clock.after(Math.round(lease.renewMs / 2), () => late.abort(new Error('no answer in time')));
  const forget = onAbort(signal, () => late.abort(signal.reason));
  try {
    const { held } = await tryAcquire(lease, late.signal);
    if (lease.isUnanswered) lease.onAnswered?.();
    lease.isUnanswered = false;
    return held ? 'held' : 'taken';
  } catch (error) {
    lease.isUnanswered ||= !(error instanceof ApiError);
    if (!signal.aborted) lease.onError?.(error);
    return late.signal.aborted ? 'late' : 'failed';
  } finally {
    cancel();
    forget();
  }
}

async function tryAcquire(lease: LeaseState, signal: AbortSignal): Promise<LeaseAttempt> {
  const { client, namespace, name, identity, durationMs, clock, cannotRelease } = lease;
  const sent = { monotonic: clock.monotonic(), wall: clock.wall() };
  const current = await read(lease, signal);
  const spec = objectAt(current ?? {}, 'spec');
  const holder = stringAt(spec, 'holderIdentity') ?? '';
  if (holder !== '' && holder !== identity && !expired(lease, current ?? {})) {
    return { held: false, holder, alive: (lease.observed?.changes ?? 0) > 0 };
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
  lease.asked = true;
  try {
    if (current !== undefined) await update(lease, next, signal);
    else {
      const path = `${lease.collection}?fieldManager=${FIELD_MANAGER}`;
      await client.request('create', path, { body: next, signal });
    }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    return { held: false, holder: 'another replica', alive: true };
  }
  lease.renewed = sent;
  return { held: true };
}

async function update({ client, collection, name }: LeaseState, body: JsonObject, signal: AbortSignal): Promise<void> {
  await client.request('update', `${collection}/${name}?fieldManager=${FIELD_MANAGER}`, { body, signal });
}

async function read(lease: LeaseState, signal: AbortSignal): Promise<JsonObject | undefined> {
  lease.firstLook ??= lease.clock.monotonic();
  return find(lease.client, `${lease.collection}/${lease.name}`, signal);
}

/**
 * Whether the holder was silent for its whole duration, counted from when this process saw the record change. The clocks of two
 * machines are never compared.
 */
function expired(lease: LeaseState, current: JsonObject): boolean {
  const { observed, clock, durationMs } = lease;
  const spec = objectAt(current, 'spec');
  const fingerprint = JSON.stringify([spec.holderIdentity, spec.renewTime, spec.leaseTransitions]);
  const heldMs = (numberAt(spec, 'leaseDurationSeconds') ?? durationMs / 1000) * 1000;
  if (observed?.fingerprint === fingerprint) return clock.monotonic() - observed.at > heldMs;
  const [changes, before] = [(observed?.changes ?? -1) + 1, observed?.holder ?? ''];
  const holder = stringAt(spec, 'holderIdentity') ?? '';
  const isMarked = stringsAt(objectAt(current, 'metadata'), 'annotations')?.[RELEASES_FAIL_ANNOTATION] !== undefined;
  lease.observed = { fingerprint, at: clock.monotonic(), changes, holder, before, heldMs, canRelease: !isMarked };
  return false;
}

function mayWrite({ renewed, clock, renewMs }: LeaseState): boolean {
  if (renewed === undefined) return false;
  // The monotonic clock stops while the machine is suspended, and a correction moves the wall clock: the larger age counts.
  return Math.max(clock.monotonic() - renewed.monotonic, clock.wall() - renewed.wall) < renewMs;
}

function hasLeader(lease: LeaseState): boolean {
  const { released, observed, retryMs } = lease;
  if (mayWrite(lease)) return true;
  const now = lease.clock.monotonic();
  if (released !== undefined && now - released < 2 * retryMs) return true;
  if (observed === undefined || isCleaner(observed.holder)) return false;
  const { holder, before, at, changes, heldMs } = observed;
  if (holder === '') return before !== '' && !isCleaner(before) && now - at < 2 * retryMs;
  // A record that was seen only once may be that of a holder that has died.
  return changes > 0 && now - at <= heldMs;
}

/** Keeps reading who holds the Lease, for `hasLeader`, without taking it, until the signal aborts. */
async function follow(lease: LeaseState, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      expired(lease, (await read(lease, signal)) ?? {});
    } catch (error) {
      if (!signal.aborted) lease.onError?.(error);
    }
    await lease.clock.delay(lease.retryMs, signal);
  }
}

/** Releases the Lease, so that another replica need not wait. Call it when no write is under way any more. */
async function release(lease: LeaseState, signal: AbortSignal): Promise<void> {
  lease.renewed = undefined;
  // An attempt without an answer may have taken the Lease. Without a release the next leader would wait for it in vain.
  if (!lease.asked) return;
  const current = await read(lease, signal);
  if (current === undefined || stringAt(objectAt(current, 'spec'), 'holderIdentity') !== lease.identity) return;
  // The API server refuses a duration of 0. With one second, the next replica can take over at once.
  const spec = { ...objectAt(current, 'spec'), holderIdentity: '', leaseDurationSeconds: 1 };
  await update(lease, { ...current, spec }, signal);
  lease.released = lease.clock.monotonic();
}

/** Deletes the Lease, whether or not it was released, unless another replica has taken it meanwhile. For the last process that uses it. */
async function remove(lease: LeaseState, signal: AbortSignal): Promise<void> {
  const { client, collection, name, identity } = lease;
  lease.renewed = undefined;
  const current = await read(lease, signal);
  if (current === undefined) return;
  const holder = stringAt(objectAt(current, 'spec'), 'holderIdentity') ?? '';
  if (holder !== '' && holder !== identity) return;
  const { uid, resourceVersion } = objectAt(current, 'metadata');
  await client.request('delete', `${collection}/${name}`, {
    body: { preconditions: { uid, resourceVersion } },
    signal,
  });
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

/** Whether the holder of a Lease is `clean`. */
export function isCleaner(holder: string): boolean {
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
