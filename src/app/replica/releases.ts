import type { Clock } from '../../kit/clock.ts';
import { ApiError, concernsServer, mayBeWrongStatus } from '../../kube/errors.ts';
import type { Writer } from '../../kube/writer.ts';
import type { Logger } from '../../observability/log.ts';

/** Releases count as failing once they have failed for this long. A short trouble delays a pod less than a gate does. */
const FAILING_MS = 10_000;
/** After this time without any attempt, nothing is known: each gated pod is tried more often. */
const FORGOTTEN_MS = 120_000;
/**
 * What RBAC says first. A policy or a webhook that refuses one pod says something else first, whatever a tenant makes it quote: he must
 * not stop the gates of others.
 */
const MISSING_RIGHT = /: 403 pods "[^"]*" is forbidden: User "/;

/** Whether the release of every other pod would fail, too. */
function concernsAll(error: unknown): boolean {
  if (!concernsServer(error)) return false;
  if (!(error instanceof ApiError)) return true;
  return error.status === 403 ? MISSING_RIGHT.test(error.message) : !mayBeWrongStatus(error);
}

/** Creates the record; at first releases count as working. */
export function createReleases({ monotonic }: Pick<Clock, 'monotonic'>, log: Pick<Logger, 'info' | 'warn'>) {
  let failing: { readonly since: number; last: number } | undefined;
  let isSaid = false;

  function fail(): boolean {
    if (failing === undefined) return false;
    return failing.last - failing.since >= FAILING_MS && monotonic() - failing.last < FORGOTTEN_MS;
  }

  return {
    /** Whether releases fail, so that no more pods should be gated. */
    fail,
    /** Returns a writer that records how the releases among its writes end. */
    through:
      (write: Writer): Writer =>
      async (target, patch, signal) => {
        if (target.action !== 'release') return write(target, patch, signal);
        try {
          const result = await write(target, patch, signal);
          if (result.kind !== 'written') return result;
          failing = undefined;
          if (isSaid) log.info('pods are released again, and gated where that is needed');
          isSaid = false;
          return result;
        } catch (err) {
          if (!concernsAll(err)) throw err;
          const now = monotonic();
          failing = { since: failing?.since ?? now, last: now };
          if (fail() && !isSaid) log.warn({ err }, 'pods cannot be released: no more pods are gated until one is');
          isSaid = fail();
          throw err;
        }
      },
  };
}
