import type { Lease } from '../../kube/lease.ts';

/**
 * Runs a `term` each time that this replica holds the lease, until the signal aborts. The lease is held until the writes under way
 * have ended. `onLost`: called if the lease was lost during a term.
 */
export async function leadInTurns(
  lease: Lease,
  term: (over: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  onLost: () => void,
): Promise<void> {
  while (await lease.acquire(signal)) {
    const over = new AbortController();
    const ended = new AbortController();
    const keeping = lease.keep(ended.signal).then(() => over.abort());
    await term(over.signal);
    ended.abort();
    await keeping;
    if (signal.aborted) return;
    onLost();
  }
}
