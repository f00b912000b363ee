import { type JsonObject, listAt, objectAt, stringAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/client.ts';
import { readAll } from '../kube/list.ts';
import type { OwnersPods } from '../placement/clean/turns.ts';
import { readOwner } from '../placement/objects/pod.ts';

/** A pod, as far as the turn of its owner needs it. */
type SeenPod = { readonly uid: string; readonly owner: string; readonly ready: boolean };

/** Whose pods are asked for. */
export type OwnerQuery = {
  readonly namespace: string;
  /** The uid of the controlling owner; of a pod without one its own. */
  readonly key: string;
  /** Narrows the list where all pods of the owner carry it. */
  readonly templateHash: string | undefined;
};

/**
 * The pods of some owners as they are now, each list made once: of a ReplicaSet by the label of its template, else of its
 * namespace. Pods that are being deleted or are over do not count.
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
