import type { Lease } from '../../kube/lease.ts';

/**
 * Leads whenever the lease is ours, until the signal aborts: one `term` after the other. Writes under way keep their lease
 * until they have ended. `onLost`: the lease was lost while a term went on.
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
