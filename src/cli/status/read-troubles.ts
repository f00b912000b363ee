import { each } from '../../kit/fairness/each.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { isForbidden } from '../../kube/errors.ts';
import { readAll } from '../../kube/list.ts';
import { find } from '../../kube/read.ts';
import { FIELD_MANAGER } from '../../names.ts';
import {
  type Claim,
  type Confirming,
  isConfirmed,
  isControlledBy,
  newestClaims,
  readClaim,
  type Trouble,
} from './troubles.ts';

const EVENTS = `/apis/events.k8s.io/v1/events?fieldSelector=${encodeURIComponent(`reportingController=${FIELD_MANAGER},type=Warning`)}`;

/** The group of each kind that can be looked at. */
const GROUPS: Readonly<Record<string, string>> = {
  Pod: 'api/v1',
  DaemonSet: 'apis/apps/v1',
  ReplicaSet: 'apis/apps/v1',
  StatefulSet: 'apis/apps/v1',
  Job: 'apis/batch/v1',
};

const AT_ONCE = 8;

/**
 * Reads the controller's Events about what does not work (API servers keep Events for an hour by default), and returns those that
 * the present state of their objects confirms. Throws what the client throws, apart from a missing right to read an object.
 */
export async function readTroubles(client: ApiClient, confirming: Confirming, signal: AbortSignal): Promise<Trouble[]> {
  const found: Trouble[] = [];
  await each(newestClaims(await readAll(client, EVENTS, readClaim, signal)), AT_ONCE, async (claim) => {
    if (await isTrue(client, claim, confirming, signal)) found.push(claim);
  });
  const nameOf = ({ kind, namespace, name, reason }: Trouble) => [kind, namespace, name, reason].join('/');
  return found
    .map(({ kind, namespace, name, reason, note }) => ({ kind, namespace, name, reason, note }))
    .sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

async function isTrue(client: ApiClient, claim: Claim, confirming: Confirming, signal: AbortSignal): Promise<boolean> {
  if (claim.kind === 'Node') return isConfirmed(claim, {}, [], confirming);
  const group = Object.hasOwn(GROUPS, claim.kind) ? GROUPS[claim.kind] : undefined;
  if (group === undefined) return false;
  const within = `namespaces/${encodeURIComponent(claim.namespace)}`;
  const path = `/${group}/${within}/${claim.kind.toLowerCase()}s/${encodeURIComponent(claim.name)}`;
  try {
    const object = await find(client, path, signal);
    if (object === undefined) return false;
    if (isConfirmed(claim, object, [], confirming)) return true;
    if (claim.kind === 'Pod' || claim.kind === 'DaemonSet') return false;
    const pods = await readAll(
      client,
      `/api/v1/${within}/pods`,
      (pod) => (isControlledBy(pod, claim.uid) ? pod : undefined),
      signal,
    );
    return isConfirmed(claim, object, pods, confirming);
  } catch (error) {
    if (isForbidden(error)) return false;
    throw error;
  }
}
