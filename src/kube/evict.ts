import type { JsonObject } from '../kit/json.ts';
import type { ApiClient } from './api-client.ts';
import { ApiError, LeaseLostError } from './errors.ts';
import { find } from './read.ts';
import { pathOf } from './writer.ts';

/** The pod to evict; a new pod with the same name is a different one. */
type EvictedPod = { readonly namespace: string; readonly name: string; readonly uid: string };

/** The reason for a 429: the pod stays where it is. */
const BUDGET = 'a PodDisruptionBudget does not allow it';
/** The reason for a 500: the pod stays for as long as both budgets exist. */
const TWO_BUDGETS = 'cannot be evicted (do two PodDisruptionBudgets select it?)';

/** The result of an eviction; a `blocked` one may succeed later. */
export type Eviction = { readonly kind: 'evicted' | 'gone' } | { readonly kind: 'blocked'; readonly reason: string };

/** Reads whole pods and evicts them, for a leader. */
export type Evictor = ReturnType<typeof createEvictor>;

/** Creates an evictor that refuses to act unless `mayWrite` says that the Lease is fresh at this moment. */
export function createEvictor(client: ApiClient, mayWrite: () => boolean) {
  return {
    /** Returns the pod as it is on the server now; undefined if it is gone. */
    fetch: ({ namespace, name }: EvictedPod, signal: AbortSignal): Promise<JsonObject | undefined> =>
      find(client, pathOf({ kind: 'Pod', namespace, name }), signal),
    /** Evicts a pod if its budgets allow it. Throws {@link LeaseLostError} without sending anything if another replica may lead. */
    async evict(pod: EvictedPod, signal: AbortSignal): Promise<Eviction> {
      if (!mayWrite()) throw new LeaseLostError(`not evicted: Pod ${pod.name}: the lease is not fresh`);
      try {
        const { namespace, name, uid } = pod;
        const deleteOptions = { preconditions: { uid } };
        const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions };
        await client.request('create', `${pathOf({ kind: 'Pod', namespace, name })}/eviction`, { body, signal });
        return { kind: 'evicted' };
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.status === 404 || error.status === 409) return { kind: 'gone' };
        const reason = obstacle(error);
        if (reason === undefined) throw error;
        return { kind: 'blocked', reason };
      }
    },
  };
}

/** Returns why the pod stays; undefined if a retry soon may help. */
function obstacle({ status, hasCauses, retryAfterMs }: ApiError): string | undefined {
  switch (status) {
    case 429:
      // A 429 without a cause and with a time to come back means that the server is overloaded.
      return hasCauses || retryAfterMs === undefined ? BUDGET : undefined;
    case 500:
      return TWO_BUDGETS;
    case 400:
    case 403:
    case 422:
      return `the API server refuses it (${status})`;
    default:
      return undefined;
  }
}
