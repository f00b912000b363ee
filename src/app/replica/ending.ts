import type { Clock } from '../../kit/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Lease } from '../../kube/lease.ts';
import type { Logger } from '../../observability/log.ts';

/** The end of a process: each of these aborts so long after the signal that ends it, whatever hangs. */
export type Ending = {
  /** Writes under way are given up, so that the Lease can be released. */
  readonly writes: AbortSignal;
  /** The webhook takes no new connection. Until then the API server may still call this replica. */
  readonly admission: AbortSignal;
  /** The release of the Lease, and whatever else still runs, is given up. */
  readonly all: AbortSignal;
  /** Takes back what has not come yet, and leaves no timer behind. */
  cancel(): void;
};

/** In milliseconds after SIGTERM. Kubernetes gives 30 s; a replica that hangs must not take them. */
const ENDING_MS = { writes: 4_000, admission: 5_000, all: 9_000 } as const;

/** The last Events get this long before the Lease is released: without it none may be written. */
const LAST_EVENTS_MS = 1_000;

/** Begins to count when the signal aborts. */
export function createEnding(signal: AbortSignal, clock: Clock): Ending {
  const [writes, admission, all] = [new AbortController(), new AbortController(), new AbortController()];
  let timers: (() => void)[] = [];
  const begin = () => {
    timers = [
      clock.after(ENDING_MS.writes, () => writes.abort()),
      clock.after(ENDING_MS.admission, () => admission.abort()),
      clock.after(ENDING_MS.all, () => all.abort()),
    ];
  };
  if (signal.aborted) begin();
  else signal.addEventListener('abort', begin, { once: true });
  return {
    writes: writes.signal,
    admission: admission.signal,
    all: all.signal,
    cancel() {
      signal.removeEventListener('abort', begin);
      for (const cancelTimer of timers) cancelTimer();
    },
  };
}

/** Writes the last Events and releases the Lease, where there is one; gives up at the deadline. */
export async function sayFarewell(
  parts: {
    readonly lease: Pick<Lease, 'release'> | undefined;
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
    await lease?.release(deadline);
  } catch (err) {
    log.warn({ err }, 'lease not released: the next leader waits until it runs out');
  }
}
