import type { Clock } from '../kit/clock.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { ApiError, isForbidden, isGone } from '../kube/errors.ts';
import type { FoundLease, LeaseName } from '../kube/installation/leases.ts';
import { createLease, type Lease, type LeaseAttempt } from '../kube/lease.ts';
import { retrying } from '../kube/retry.ts';
import { findLease, leadText, liveLeases, type OwnControllers, RefusedError, stopAdvice } from './controllers.ts';

export type HoldOptions = {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly identity: string;
  readonly durationMs: number;
  /** How long to wait for a live leader to end. */
  readonly waitMs: number;
  /**
   * Whether `clean` has scaled the Deployments to 0. Then a leader that still lives is not one of their replicas, or does not end.
   */
  readonly stopping: boolean;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
};

/** The Leases that `clean` holds while it works, so that no controller leads meanwhile. */
export type HeldLeases = {
  /** Whether a write may be sent: each Lease was renewed a short time ago. */
  fresh(): boolean;
  /** Releases the Leases, so that the next leader need not wait. It takes 5 s at most. */
  release(): Promise<void>;
  /**
   * Releases the Leases, and waits for as long as a replica needs that lives nevertheless to take one: a leader that hung was not
   * seen before. Returns the Leases that were taken.
   */
  lookForLeaders(signal: AbortSignal): Promise<FoundLease[]>;
  /** Deletes the Leases that nobody has taken after their release. */
  remove(signal: AbortSignal): Promise<void>;
};

const WATCH_MS = 500;
const RELEASE_MS = 5_000;
/** A replica tries to take a free Lease 7.5 times in its duration. */
const TRIES_SHARE = 3;

/**
 * Returns the Leases to hold so that no archaware controller can lead: those that exist, and for a Deployment without one the
 * Lease that it would create. `configured` counts if it is set explicitly, or if nothing was found.
 */
export function leasesToHold(
  { deployments, leases }: Pick<OwnControllers, 'deployments' | 'leases'>,
  configured: LeaseName & { readonly stated: boolean },
): LeaseName[] {
  const { namespace, name, stated } = configured;
  const found = [...leases, ...deployments.map((deployment) => ({ namespace: deployment.namespace, name }))];
  const all = stated || found.length === 0 ? [{ namespace, name }, ...found] : found;
  return [...new Map(all.map((leaseName) => [`${leaseName.namespace}/${leaseName.name}`, leaseName])).values()].map(
    (leaseName) => ({
      namespace: leaseName.namespace,
      name: leaseName.name,
    }),
  );
}

/**
 * Takes the Leases one after the other, and renews them until `signal` aborts. Calls `lost` if one is lost. Another holder gets the
 * duration of its Lease to renew it. Throws {@link RefusedError} if a leader lives, after releasing the Leases taken so far.
 */
export async function holdLeases(
  names: readonly LeaseName[],
  options: HoldOptions,
  lost: () => void,
): Promise<HeldLeases> {
  const held: Lease[] = [];
  let refused: unknown;
  const ended = new AbortController();
  const release = async () => {
    ended.abort();
    const late = new AbortController();
    const cancel = options.clock.after(RELEASE_MS, () => late.abort());
    await Promise.all(held.map((lease) => lease.release(late.signal).catch(() => undefined)));
    cancel();
  };
  try {
    for (const leaseName of names) {
      const taken = await take(leaseName, options);
      if (taken instanceof ApiError) refused ??= taken;
      if (taken === undefined || taken instanceof ApiError) continue;
      held.push(taken);
      void taken.keep(AbortSignal.any([options.signal, ended.signal])).then(() => {
        if (!ended.signal.aborted) lost();
      });
    }
    if (held.length === 0 && refused !== undefined) throw refused;
  } catch (error) {
    await release();
    throw error;
  }
  return {
    fresh: () => held.every((lease) => lease.fresh()),
    release,
    async lookForLeaders(signal) {
      await release();
      await options.clock.delay(options.durationMs / TRIES_SHARE, signal);
      signal.throwIfAborted();
      const now = await Promise.all(names.map((leaseName) => findLease(options.client, leaseName, signal)));
      return now.flatMap((lease) => (lease === undefined || lease.holder === '' ? [] : lease));
    },
    async remove(signal) {
      await Promise.all(held.map((lease) => lease.remove(signal).catch(() => undefined)));
    },
  };
}

/**
 * Takes a Lease. Undefined if its namespace does not exist; the API server's refusal if these credentials may not take the Lease
 * and nobody renews it.
 */
async function take(leaseName: LeaseName, options: HoldOptions): Promise<Lease | ApiError | undefined> {
  const { client, clock, identity, durationMs, waitMs, say, signal } = options;
  const { namespace, name } = leaseName;
  const lease = createLease({ client, namespace, name, identity, durationMs, clock });
  const deadline = clock.monotonic() + waitMs;
  let said = false;
  for (;;) {
    signal.throwIfAborted();
    let attempt: LeaseAttempt;
    try {
      attempt = await retrying(() => lease.tryAcquire(signal), { clock, signal });
    } catch (error) {
      // Without the namespace of the Lease, no leader can work there either.
      if (isGone(error)) return undefined;
      if (!isForbidden(error)) throw error;
      await refuseIfLive(leaseName, options, error);
      return error;
    }
    if (attempt.held) return lease;
    if (attempt.alive && clock.monotonic() >= deadline) {
      const advice = options.stopping
        ? 'it does not belong to a Deployment of archaware, or it does not stop'
        : stopAdvice(namespace);
      throw new RefusedError(`${leadText({ ...leaseName, holder: attempt.holder })}: ${advice}`);
    }
    if (!said) {
      const seconds = Math.round(durationMs / 1000);
      say(
        attempt.alive
          ? `${attempt.holder} leads; waiting until it stops`
          : `${attempt.holder} holds the lease; waiting up to ${seconds}s to see whether it still runs`,
      );
    }
    said = true;
    await clock.delay(WATCH_MS, signal);
  }
}

/** Watches a Lease of another namespace that may not be taken, and refuses if somebody renews it. */
async function refuseIfLive(
  leaseName: LeaseName,
  { client, clock, say, signal }: HoldOptions,
  error: ApiError,
): Promise<void> {
  const lease = await findLease(client, leaseName, signal);
  const [live] = lease === undefined ? [] : await liveLeases(client, [lease], { clock, atMostMs: Infinity, signal });
  if (live !== undefined) throw new RefusedError(`${leadText(live)}: ${stopAdvice(leaseName.namespace)}`);
  say(`${error.message}: another controller could begin to lead there while clean runs`);
}
