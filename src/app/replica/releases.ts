import type { Clock } from '../../kit/clock.ts';
import { isObject, objectAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError, concernsServer, mayBeWrongStatus } from '../../kube/errors.ts';
import type { Writer } from '../../kube/writer.ts';
import type { Logger } from '../../observability/log.ts';

/** Releases count as failing once they have failed for this long. A short trouble delays a pod less than a gate does. */
const FAILING_MS = 10_000;
/** After this time without any attempt, nothing is known: each gated pod is tried more often. */
const FORGOTTEN_MS = 120_000;
const REVIEWS = 'authorization.k8s.io/v1';

/** The answer of a review by the API server, about us: may we patch pods in this namespace? Throws what the client throws. */
export type MayPatchPods = (namespace: string, signal: AbortSignal) => Promise<boolean>;

/** Asks with a SelfSubjectAccessReview, which every account may create. */
export function createMayPatchPods({ request }: Pick<ApiClient, 'request'>): MayPatchPods {
  return async (namespace, signal) => {
    const resourceAttributes = { verb: 'patch', resource: 'pods', namespace };
    const body = { apiVersion: REVIEWS, kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } };
    const answer = await request('create', `/apis/${REVIEWS}/selfsubjectaccessreviews`, { body, signal });
    return isObject(answer) && objectAt(answer, 'status').allowed === true;
  };
}

/** Creates the record; at first releases count as working. */
export function createReleases(
  { monotonic }: Pick<Clock, 'monotonic'>,
  log: Pick<Logger, 'info' | 'warn'>,
  mayPatchPods: MayPatchPods,
) {
  let failing: { readonly since: number; last: number } | undefined;
  let isSaid = false;

  function fail(): boolean {
    if (failing === undefined) return false;
    return failing.last - failing.since >= FAILING_MS && monotonic() - failing.last < FORGOTTEN_MS;
  }

  /**
   * Whether the release of every other pod would fail, too. A 403 may come from a policy or a webhook that refuses this pod alone: a
   * tenant must not stop the gates of others, so what counts is our right, not the message.
   */
  async function concernsAll(error: unknown, namespace: string, signal: AbortSignal): Promise<boolean> {
    if (!concernsServer(error)) return false;
    if (!(error instanceof ApiError)) return true;
    if (error.status !== 403) return !mayBeWrongStatus(error);
    // Without an answer nothing is known about the right; if the API server is away, the next release says so.
    return !(await mayPatchPods(namespace, signal).catch(() => true));
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
          if (!(await concernsAll(err, target.namespace ?? '', signal))) throw err;
          const now = monotonic();
          failing = { since: failing?.since ?? now, last: now };
          if (fail() && !isSaid) log.warn({ err }, 'pods cannot be released: no more pods are gated until one is');
          isSaid = fail();
          throw err;
        }
      },
  };
}
