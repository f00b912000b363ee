import { onAbort } from '../../kit/abort.ts';
import type { Clock } from '../../kit/clock.ts';

/**
 * Creates the deadlines of a shutdown. Each aborts a fixed time after the signal (SIGTERM), even if something hangs: Kubernetes gives
 * 30 s, and a replica that hangs must not use all of it.
 */
export function createEnding(signal: AbortSignal, clock: Clock) {
  const cancels: (() => void)[] = [];
  function late(ms: number): AbortSignal {
    const controller = new AbortController();
    const forget = onAbort(signal, () => cancels.push(clock.after(ms, () => controller.abort())));
    cancels.push(forget);
    return controller.signal;
  }
  return {
    /** Aborts the writes under way, so that the Lease can be released. */
    writes: late(4_000),
    /** Makes the webhook refuse new connections. Until then the API server may still call this replica. */
    admission: late(5_000),
    /** Aborts the release of the Lease and everything else that still runs. */
    all: late(9_000),
    /** Cancels the deadlines that have not come yet, so that no timer is left. */
    cancel(): void {
      for (const cancel of cancels) cancel();
    },
  };
}
