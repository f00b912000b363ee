import type { Clock } from '../kube/clock.ts';

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
