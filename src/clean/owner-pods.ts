import { type JsonObject, listAt, objectAt, stringAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/client.ts';
import { readAll } from '../kube/list.ts';
import type { OwnersPods } from '../placement/clean/turns.ts';
import { readOwner } from '../placement/objects/pod.ts';

/** The fields of a pod that the turn of its owner needs. */
type SeenPod = { readonly uid: string; readonly owner: string; readonly ready: boolean };

/** An owner whose pods are requested. */
export type OwnerQuery = {
  readonly namespace: string;
  /** The uid of the controlling owner; for a pod without one its own uid. */
  readonly key: string;
  /** The label value by which the list is narrowed, if all pods of the owner have it. */
  readonly templateHash: string | undefined;
};

/**
 * Reads the present pods of some owners, with each list request sent once: for a ReplicaSet by the label of its template, else for
 * the whole namespace. Pods that are being deleted or are finished do not count.
 */
export async function podsOfOwners(
  client: ApiClient,
  owners: readonly OwnerQuery[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, OwnersPods>> {
  const paths = new Set(owners.map(pathFor));
  const lists = await Promise.all([...paths].map((path) => readAll(client, path, readSeen, signal)));
  const found = new Map(owners.map(({ key }) => [key, new Map<string, boolean>()]));
  for (const { uid, owner, ready } of lists.flat()) found.get(owner)?.set(uid, ready);
  return found;
}

function pathFor({ namespace, templateHash }: OwnerQuery): string {
  const path = `/api/v1/namespaces/${namespace}/pods`;
  return templateHash === undefined
    ? path
    : `${path}?labelSelector=${encodeURIComponent(`pod-template-hash=${templateHash}`)}`;
}

function readSeen(object: JsonObject): SeenPod | undefined {
  const metadata = objectAt(object, 'metadata');
  const status = objectAt(object, 'status');
  const phase = stringAt(status, 'phase');
  if (stringAt(metadata, 'deletionTimestamp') !== undefined || phase === 'Succeeded' || phase === 'Failed') return;
  const uid = stringAt(metadata, 'uid') ?? '';
  const ready = (listAt(status, 'conditions') ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True');
  return { uid, owner: readOwner(metadata)?.uid ?? uid, ready };
}
