import { isObject, type JsonObject } from '../kit/json.ts';
import type { Operation } from '../kit/json-patch.ts';
import { FIELD_MANAGER } from '../names.ts';
import type { ApiClient } from './api-client.ts';
import { ApiError, isConflict, isGone, LeaseLostError } from './errors.ts';
import { find } from './read.ts';

/** The object to write. */
export type WriteTarget = {
  readonly kind: 'Pod' | 'Node' | 'DaemonSet' | 'Namespace';
  readonly namespace?: string;
  readonly name: string;
  /** The purpose of the write in one word, for logs and `plan`. */
  readonly action:
    | 'tolerate'
    | 'require'
    | 'release'
    | 'taint'
    | 'untaint'
    | 'label'
    | 'unlabel'
    | 'restore'
    | 'give-back'
    | 'report';
};

/** The result of a write: the object as it is now (or its metadata alone), or why it was not written. */
export type WriteResult =
  | { readonly kind: 'written'; readonly object: JsonObject }
  /** Recorded instead of sent, as `plan` does. */
  | { readonly kind: 'recorded' }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'gone' };

/**
 * Writes one JSON Patch. Throws {@link LeaseLostError} without sending anything if another replica may lead, and what
 * the client throws for a refusal or a failed connection.
 */
export type Writer = (target: WriteTarget, patch: readonly Operation[], signal: AbortSignal) => Promise<WriteResult>;

/** Returns the path of an object in the API. */
export function pathOf({ kind, namespace = '', name }: Omit<WriteTarget, 'action'>): string {
  switch (kind) {
    case 'Pod':
      return `/api/v1/namespaces/${namespace}/pods/${name}`;
    case 'Node':
      return `/api/v1/nodes/${name}`;
    case 'DaemonSet':
      return `/apis/apps/v1/namespaces/${namespace}/daemonsets/${name}`;
    case 'Namespace':
      return `/api/v1/namespaces/${name}`;
    default:
      return kind satisfies never;
  }
}

/**
 * Creates the writer that sends patches. `mayWrite`: whether the Lease is fresh at this moment. `answers`: `metadata` for callers
 * that know what they wrote and need only its version: a node has 10 KB. Of a pod, the answer is always its metadata. `onConflict`:
 * the target has another version than the decision.
 */
export function createWriter(
  client: ApiClient,
  mayWrite: () => boolean,
  answers: 'whole' | 'metadata' = 'whole',
  onConflict?: (target: WriteTarget) => Promise<void>,
): Writer {
  return async (target, patch, signal) => {
    if (!mayWrite()) throw new LeaseLostError(`not written: ${target.kind} ${target.name}: the lease is not fresh`);
    try {
      const object = await client.request('patch', `${pathOf(target)}?fieldManager=${FIELD_MANAGER}`, {
        body: patch,
        metadataOnly: answers === 'metadata' || target.kind === 'Pod',
        signal,
      });
      return { kind: 'written', object: isObject(object) ? object : {} };
    } catch (error) {
      if (isConflict(error)) {
        void onConflict?.(target);
        return { kind: 'conflict' };
      }
      // A proxy may answer 404 for reasons of its own, so the reason of the API server must be there too.
      if (isGone(error) && error instanceof ApiError && error.reason === 'NotFound') return { kind: 'gone' };
      throw error;
    }
  };
}

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
