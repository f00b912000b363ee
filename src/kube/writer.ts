import { isObject, type JsonObject } from '../kit/json.ts';
import type { Operation } from '../kit/json-patch.ts';
import { FIELD_MANAGER } from '../names.ts';
import type { ApiClient } from './client.ts';
import { ApiError, isConflict, isGone, LeaseLostError } from './errors.ts';

/** The object that is written. */
export type WriteTarget = {
  readonly kind: 'Pod' | 'Node' | 'DaemonSet';
  readonly namespace?: string;
  readonly name: string;
  /** What the write is for, in one word, for logs and `plan`. */
  readonly action: 'tolerate' | 'release' | 'taint' | 'untaint' | 'label' | 'unlabel' | 'restore';
};

/** What became of a write: the object as it is now (of a pod its metadata alone), or why it was not written. */
export type WriteResult =
  | { readonly kind: 'written'; readonly object: JsonObject }
  /** Written down instead of sent, as `plan` does. */
  | { readonly kind: 'recorded' }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'gone' };

/**
 * Writes one JSON Patch. Throws {@link LeaseLostError} without sending anything where another replica may lead, and
 * what the client throws for a refusal or a failed connection.
 */
export type Writer = (target: WriteTarget, patch: readonly Operation[], signal: AbortSignal) => Promise<WriteResult>;

/** The path of an object in the API. */
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

/** Creates the writer that sends. `mayWrite`: whether the lease is fresh at this moment. */
export function createWriter(client: ApiClient, mayWrite: () => boolean): Writer {
  return async (target, patch, signal) => {
    if (!mayWrite()) throw new LeaseLostError(`not written: ${target.kind} ${target.name}: the lease is not fresh`);
    try {
      const object = await client.request('patch', `${pathOf(target)}?fieldManager=${FIELD_MANAGER}`, {
        body: patch,
        contentType: 'application/json-patch+json',
        // Pods are many, and what was written to one is known.
        metadataOnly: target.kind === 'Pod',
        signal,
      });
      return { kind: 'written', object: isObject(object) ? object : {} };
    } catch (error) {
      if (isConflict(error)) return { kind: 'conflict' };
      // A proxy may say 404 for reasons of its own, without the API server's word for it.
      if (isGone(error) && error instanceof ApiError && error.reason === 'NotFound') return { kind: 'gone' };
      throw error;
    }
  };
}
