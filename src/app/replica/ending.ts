import { onAbort } from '../../kit/abort.ts';
import type { Clock } from '../../kit/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Lease } from '../../kube/lease.ts';
import type { Logger } from '../../observability/log.ts';

/** The deadlines in milliseconds after SIGTERM. Kubernetes gives 30 s; a replica that hangs must not use all of it. */
const ENDING_MS = { writes: 4_000, admission: 5_000, all: 9_000 } as const;

/** The time for the last Events. They must be written before the Lease is released, because only the leader writes Events. */
const LAST_EVENTS_MS = 1_000;

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

/** Writes the last Events and releases the Lease. Gives up at the deadline. */
export async function sayFarewell(
  parts: {
    readonly lease: Pick<Lease, 'release'>;
    readonly events: Pick<EventRecorder, 'flush'>;
    readonly clock: Clock;
    readonly log: Logger;
  },
  deadline: AbortSignal,
): Promise<void> {
  const { lease, events, clock, log } = parts;
  const late = new AbortController();
  const cancel = clock.after(LAST_EVENTS_MS, () => late.abort());
  await events.flush(AbortSignal.any([late.signal, deadline]));
  cancel();
  try {
    await lease.release(deadline);
  } catch (err) {
    log.warn({ err }, 'lease not released: the next leader waits until it expires');
  }
}
