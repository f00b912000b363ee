import { isObject, type JsonObject } from '../kit/json.ts';
import type { ApiClient } from './client.ts';
import { ApiError, isGone, LeaseLostError } from './errors.ts';
import { pathOf } from './writer.ts';

/** The pod that is meant: another one of its name is not. */
export type EvictedPod = { readonly namespace: string; readonly name: string; readonly uid: string };

/** Why a 429 keeps a pod where it is. */
export const BUDGET = 'a PodDisruptionBudget does not allow it';
/** Why a 500 does, for ever. */
export const TWO_BUDGETS = 'cannot be evicted (two PodDisruptionBudgets over it?)';

/** Evicts a pod (policy/v1), if its budgets let it go. Throws what the client throws: 429 for a budget, 409 for another uid. */
export async function evict(
  client: ApiClient,
  { namespace, name, uid }: EvictedPod,
  signal: AbortSignal,
): Promise<void> {
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { preconditions: { uid } },
  };
  await client.request('create', `${pathOf({ kind: 'Pod', namespace, name })}/eviction`, { body, signal });
}

/** What became of an eviction; `blocked` may go another time. */
export type Eviction = { readonly kind: 'evicted' | 'gone' } | { readonly kind: 'blocked'; readonly reason: string };

/** Looks at pods whole and evicts them, for a leader. */
export type Evictor = {
  /** The pod as it is on the server now; undefined where it is gone. */
  fetch(pod: EvictedPod, signal: AbortSignal): Promise<JsonObject | undefined>;
  /** Throws {@link LeaseLostError} without sending anything where another replica may lead. */
  evict(pod: EvictedPod, signal: AbortSignal): Promise<Eviction>;
};

/** Creates it. `mayWrite`: whether the lease is fresh at this moment. */
export function createEvictor(client: ApiClient, mayWrite: () => boolean): Evictor {
  return {
    async fetch({ namespace, name }, signal) {
      try {
        const object = await client.request('get', pathOf({ kind: 'Pod', namespace, name }), { signal });
        return isObject(object) ? object : undefined;
      } catch (error) {
        if (isGone(error)) return undefined;
        throw error;
      }
    },
    async evict(pod, signal) {
      if (!mayWrite()) throw new LeaseLostError(`not evicted: Pod ${pod.name}: the lease is not fresh`);
      try {
        await evict(client, pod, signal);
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

/** Why the pod stays; undefined where trying again soon may help. */
export function obstacle({ status, hasCauses, retryAfterMs }: ApiError): string | undefined {
  switch (status) {
    case 429:
      // Without a cause, and with a time to come back, it is the server that has too much to do.
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
