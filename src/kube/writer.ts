import { isObject, type JsonObject } from '../kit/json.ts';
import type { Operation } from '../kit/json-patch.ts';
import { FIELD_MANAGER } from '../names.ts';
import type { ApiClient } from './api-client.ts';
import { ApiError, isConflict, isGone, LeaseLostError } from './errors.ts';

/** The object to write. */
export type WriteTarget = {
  readonly kind: 'Pod' | 'Node' | 'DaemonSet';
  readonly namespace?: string;
  readonly name: string;
  /** The purpose of the write in one word, for logs and `plan`. */
  readonly action: 'tolerate' | 'release' | 'taint' | 'untaint' | 'label' | 'unlabel' | 'restore' | 'give-back';
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
        contentType: 'application/json-patch+json',
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
