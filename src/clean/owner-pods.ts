import { type JsonObject, listAt, numberAt, objectAt, stringAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { isForbidden } from '../kube/errors.ts';
import { readAll } from '../kube/list.ts';
import { find } from '../kube/read.ts';
import type { OwnersPods } from '../placement/clean/owner-turns.ts';
import { type Owner, readOwner } from '../placement/objects/pod.ts';

/** The fields of a pod that the turn of its owner needs. */
type SeenPod = { readonly uid: string; readonly owner: string; readonly ready: boolean };

/** An owner whose state is requested. */
export type OwnerQuery = {
  readonly namespace: string;
  /** An owner of a kind that says how many pods it wants. */
  readonly owner: Owner;
  /** The label value by which the list is narrowed, if all pods of the owner have it. */
  readonly templateHash: string | undefined;
};

/** An owner and its pods at one moment. Pods that are being deleted or are finished do not count. */
export type OwnerState = {
  readonly pods: OwnersPods;
  /** How many pods it wants by its spec; a reason if none of its pods may be removed. */
  readonly wanted: number | { readonly reason: string };
};

/** The paths of the kinds that say how many pods they want. */
const COLLECTIONS: Readonly<Record<string, string>> = {
  ReplicaSet: '/apis/apps/v1',
  StatefulSet: '/apis/apps/v1',
  DaemonSet: '/apis/apps/v1',
  ReplicationController: '/api/v1',
};

/**
 * Reads some owners and their present pods, with each list request sent once: for a ReplicaSet by the label of its template, else for
 * the whole namespace. Throws what the client throws, except for a missing right to read an owner.
 */
export async function lookAtOwners(
  client: ApiClient,
  owners: readonly OwnerQuery[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, OwnerState>> {
  const paths = new Set(owners.map(pathFor));
  // The owners are read first: a pod that an owner lost meanwhile then counts as lost.
  const wanted = await Promise.all(
    owners.map(async (query) => [query.owner.uid, await readWanted(client, query, signal)] as const),
  );
  const lists = await Promise.all([...paths].map((path) => readAll(client, path, readSeen, signal)));
  const pods = new Map(owners.map(({ owner }) => [owner.uid, new Map<string, boolean>()]));
  for (const { uid, owner, ready } of lists.flat()) pods.get(owner)?.set(uid, ready);
  return new Map(wanted.map(([uid, wanted]) => [uid, { pods: pods.get(uid) ?? new Map(), wanted }]));
}

async function readWanted(
  client: ApiClient,
  { namespace, owner: { kind, name, uid } }: OwnerQuery,
  signal: AbortSignal,
): Promise<OwnerState['wanted']> {
  try {
    const path = `${COLLECTIONS[kind]}/namespaces/${namespace}/${kind.toLowerCase()}s/${encodeURIComponent(name)}`;
    const object = await find(client, path, signal);
    const metadata = objectAt(object ?? {}, 'metadata');
    // Its pods follow it, and none of them would come back.
    if (object === undefined || metadata.uid !== uid || metadata.deletionTimestamp !== undefined) {
      return { reason: `its ${kind} was deleted` };
    }
    if (kind === 'DaemonSet') return numberAt(objectAt(object, 'status'), 'desiredNumberScheduled') ?? 0;
    return numberAt(objectAt(object, 'spec'), 'replicas') ?? 1;
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return {
      reason: `these credentials may not read its ${kind}, which says how many pods it wants; run clean as an administrator`,
    };
  }
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
  const owner = readOwner(metadata)?.uid;
  if (owner === undefined) return;
  const uid = stringAt(metadata, 'uid') ?? '';
  const ready = (listAt(status, 'conditions') ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True');
  return { uid, owner, ready };
}
