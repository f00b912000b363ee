import { isForbidden, isGone } from '../kube/errors.ts';
import { type FoundLease, getLease, type LeaseName } from '../kube/installation.ts';
import { createLease, isCleaner, type Lease, type LeaseAttempt, type LeaseOptions } from '../kube/lease.ts';
import { retrying } from '../kube/retry.ts';
import { isLive, leadText, RefusedError } from './own-controller.ts';

export type HoldOptions = Pick<LeaseOptions, 'client' | 'clock' | 'identity' | 'durationMs'> & {
  /** Returns how to end the holder of the Lease. */
  readonly stopAdvice: (holder: string) => string;
  /** How long to wait for a live leader to end. */
  readonly waitMs: number;
  /** Whether `clean` has scaled the Deployment to 0. Then a leader that still lives is not one of its replicas, or does not end. */
  readonly stopping: boolean;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
};

/** The Lease that `clean` holds while it works, so that no controller leads meanwhile. */
export type HeldLease = NonNullable<Awaited<ReturnType<typeof holdLease>>>;

const WATCH_MS = 500;
const RELEASE_MS = 5_000;
/** A replica tries to take a free Lease 7.5 times in its duration. */
const TRIES_SHARE = 3;

/**
 * Takes the Lease, and renews it until `signal` aborts. Calls `lost` if it is lost. Another holder gets the duration of its Lease to
 * renew it. Undefined if the namespace of the Lease does not exist: without it, no leader can work there either. Throws
 * {@link RefusedError} if a leader lives.
 */
export async function holdLease(leaseName: LeaseName, options: HoldOptions, lost: () => void) {
  const { client, clock, durationMs } = options;
  const lease = await take(leaseName, options);
  if (lease === undefined) return undefined;
  const ended = new AbortController();
  void lease.keep(AbortSignal.any([options.signal, ended.signal])).then(() => {
    if (!ended.signal.aborted) lost();
  });
  const release = async () => {
    ended.abort();
    const late = new AbortController();
    const cancel = clock.after(RELEASE_MS, () => late.abort());
    await lease.release(late.signal).catch(() => undefined);
    cancel();
  };
  return {
    /** Whether a write may be sent: the Lease was renewed a short time ago. */
    mayWrite: lease.mayWrite,
    /** Releases the Lease, so that the next leader need not wait. It takes 5 s at most. */
    release,
    /**
     * Releases the Lease, and waits for as long as a replica needs that lives nevertheless to take it: a leader that hung was not seen
     * before. Returns the Lease if it was taken.
     */
    async lookForLeader(signal: AbortSignal): Promise<FoundLease | undefined> {
      await release();
      await clock.delay(durationMs / TRIES_SHARE, signal);
      signal.throwIfAborted();
      const now = await getLease(client, leaseName, signal);
      return now === undefined || now.holder === '' ? undefined : now;
    },
    /** Deletes the Lease, unless somebody has taken it after its release. */
    remove: (signal: AbortSignal): Promise<void> => lease.remove(signal).catch(() => undefined),
  };
}

async function take(leaseName: LeaseName, options: HoldOptions): Promise<Lease | undefined> {
  const { client, clock, identity, durationMs, waitMs, say, signal } = options;
  const lease = createLease({ client, ...leaseName, identity, durationMs, clock });
  const deadline = clock.monotonic() + waitMs;
  let said = false;
  for (;;) {
    signal.throwIfAborted();
    let attempt: LeaseAttempt;
    try {
      attempt = await retrying(() => lease.tryAcquire(signal), { clock, signal });
    } catch (error) {
      if (isGone(error)) return undefined;
      if (isForbidden(error)) await refuseIfLive(leaseName, options);
      throw error;
    }
    if (attempt.held) return lease;
    if (attempt.alive && clock.monotonic() >= deadline) {
      const advice =
        options.stopping && !isCleaner(attempt.holder)
          ? 'it does not belong to the Deployment of archaware, or it does not stop'
          : options.stopAdvice(attempt.holder);
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

/** Watches a Lease that may not be taken, and refuses if somebody renews it. */
async function refuseIfLive(leaseName: LeaseName, { client, clock, stopAdvice, signal }: HoldOptions): Promise<void> {
  const lease = await getLease(client, leaseName, signal);
  if (lease === undefined || !(await isLive(client, lease, { clock, atMostMs: Number.POSITIVE_INFINITY, signal })))
    return;
  throw new RefusedError(`${leadText(lease)}: ${stopAdvice(lease.holder)}`);
}
