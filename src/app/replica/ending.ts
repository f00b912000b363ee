import { onAbort } from '../../kit/abort.ts';
import type { Clock } from '../../kit/clock.ts';

/** The deadlines in milliseconds after SIGTERM. Kubernetes gives 30 s; a replica that hangs must not use all of it. */
const ENDING_MS = { writes: 4_000, admission: 5_000, all: 9_000 } as const;

/** Creates the deadlines of a shutdown. Each aborts a fixed time after the signal (SIGTERM), even if something hangs. */
export function createEnding(signal: AbortSignal, clock: Clock) {
  const late = { writes: new AbortController(), admission: new AbortController(), all: new AbortController() };
  let timers: (() => void)[] = [];
  const forget = onAbort(signal, () => {
    const parts = ['writes', 'admission', 'all'] as const;
    timers = parts.map((part) => clock.after(ENDING_MS[part], () => late[part].abort()));
  });
  return {
    /** Aborts the writes under way, so that the Lease can be released. */
    writes: late.writes.signal,
    /** Makes the webhook refuse new connections. Until then the API server may still call this replica. */
    admission: late.admission.signal,
    /** Aborts the release of the Lease and everything else that still runs. */
    all: late.all.signal,
    /** Cancels the deadlines that have not come yet, so that no timer is left. */
    cancel(): void {
      forget();
      for (const cancelTimer of timers) cancelTimer();
    },
  };
}
