import type { Clock } from '../kit/clock.ts';
import { type JsonObject, numberAt, objectAt, stringAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/client.ts';
import { ApiError, isGone } from '../kube/errors.ts';
import { readAll } from '../kube/list.ts';
import { APP_LABEL, DEPLOYMENT, FIELD_MANAGER } from '../names.ts';

/** The error with which `clean` refuses to start. The message says why, and what to do. Nothing in the cluster was changed. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

/** A Deployment that runs archaware. */
export type OwnDeployment = {
  readonly namespace: string;
  readonly name: string;
  /** `spec.replicas`; 0 if the Deployment is being deleted. */
  readonly wanted: number;
};

/** A Lease that an archaware controller holds, or held. */
export type OwnLease = {
  readonly namespace: string;
  readonly name: string;
  /** Empty if nobody holds it. */
  readonly holder: string;
  /** A text that changes with each renewal. */
  readonly renewed: string;
  /** How long after its last renewal the holder counts as dead, in milliseconds. */
  readonly durationMs: number;
};

export type OwnControllers = { readonly deployments: readonly OwnDeployment[]; readonly leases: readonly OwnLease[] };

const DEPLOYMENTS = '/apis/apps/v1/deployments';
const LEASES = '/apis/coordination.k8s.io/v1/leases';
/** The interval between two reads of a Lease. */
const WATCH_MS = 500;
/** The longest leaseDuration that the configuration allows. A longer one in a Lease is not believed. */
const LONGEST_MS = 600_000;

/**
 * Finds the Deployments and Leases of archaware in every namespace, by their label or their name. Throws {@link RefusedError} if
 * these credentials may not list them: a controller that `clean` does not see would undo its work.
 */
export async function findControllers(
  client: ApiClient,
  leaseName: string,
  signal: AbortSignal,
): Promise<OwnControllers> {
  const both = async <T extends { namespace: string; name: string }>(
    path: string,
    name: string,
    read: (object: JsonObject) => T,
  ): Promise<T[]> => {
    const label = encodeURIComponent(`${APP_LABEL}=${DEPLOYMENT}`);
    const queries = [`labelSelector=${label}`, byName(name)];
    const lists = await Promise.all(queries.map((query) => readAll(client, `${path}?${query}`, read, signal)));
    return [...new Map(lists.flat().map((item) => [`${item.namespace}/${item.name}`, item])).values()];
  };
  try {
    return {
      deployments: await both(DEPLOYMENTS, DEPLOYMENT, readDeployment),
      leases: await both(LEASES, leaseName, readLease),
    };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    throw new RefusedError(
      `${error.message}; clean looks for controllers of archaware in every namespace, because they would undo its work: grant "list" on ` +
        'deployments.apps and leases.coordination.k8s.io (ClusterRole archaware-controller-clean), or run it as an administrator',
    );
  }
}

/**
 * Reads a Lease; undefined if there is none. It uses a list, because `clean` has the right to list Leases everywhere, but not to
 * get them.
 */
export async function findLease(
  client: ApiClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<OwnLease | undefined> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases?${byName(name)}`;
  return (await readAll(client, path, readLease, signal))[0];
}

function byName(name: string): string {
  return `fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`;
}

function readDeployment(object: JsonObject): OwnDeployment {
  const metadata = objectAt(object, 'metadata');
  const deleting = stringAt(metadata, 'deletionTimestamp') !== undefined;
  return {
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') ?? '',
    wanted: deleting ? 0 : (numberAt(objectAt(object, 'spec'), 'replicas') ?? 1),
  };
}

function readLease(object: JsonObject): OwnLease {
  const metadata = objectAt(object, 'metadata');
  const spec = objectAt(object, 'spec');
  const holder = stringAt(spec, 'holderIdentity') ?? '';
  return {
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') ?? '',
    holder,
    renewed: JSON.stringify([holder, spec.renewTime, spec.leaseTransitions]),
    durationMs: Math.min((numberAt(spec, 'leaseDurationSeconds') ?? 15) * 1000, LONGEST_MS),
  };
}

/** Returns the Deployments that want replicas, because of which `clean` refuses. */
export function wantedOnes({ deployments }: OwnControllers): OwnDeployment[] {
  return deployments.filter(({ wanted }) => wanted > 0);
}

/** Returns `Deployment archaware/archaware-controller wants 2 replicas`. */
export function wantText({ namespace, name, wanted }: OwnDeployment): string {
  return `Deployment ${namespace}/${name} wants ${wanted} replica${wanted === 1 ? '' : 's'}`;
}

/** Returns `… leads (Lease archaware/archaware-controller)`. */
export function leadText({ namespace, name, holder }: Pick<OwnLease, 'namespace' | 'name' | 'holder'>): string {
  const verb = holder.startsWith('clean:') ? 'is another clean that is running' : 'leads';
  return `${holder} ${verb} (Lease ${namespace}/${name})`;
}

/** Returns the advice for a refusal: how to stop the controller. */
export function stopAdvice(namespace: string, name = DEPLOYMENT): string {
  return `stop it first, with --stop, or: kubectl -n ${namespace} scale deployment ${name} --replicas=0`;
}

/**
 * Watches Leases until each was renewed, or was not renewed for its duration, at most `atMostMs`. Returns those that were renewed.
 * It does not compare clocks of different machines.
 */
export async function liveLeases(
  client: ApiClient,
  leases: readonly OwnLease[],
  { clock, atMostMs, signal }: { clock: Clock; atMostMs: number; signal: AbortSignal },
): Promise<OwnLease[]> {
  const began = clock.monotonic();
  const open = leases.filter(({ holder }) => holder !== '');
  const live: OwnLease[] = [];
  for (;;) {
    const passed = clock.monotonic() - began;
    const undecided = open.filter(
      (lease) => !live.includes(lease) && passed <= Math.min(atMostMs, lease.durationMs + WATCH_MS),
    );
    if (undecided.length === 0) return live;
    await clock.delay(WATCH_MS, signal);
    signal.throwIfAborted();
    for (const lease of undecided) {
      const now = await findLease(client, lease, signal);
      if (now === undefined || now.holder === '') open.splice(open.indexOf(lease), 1);
      else if (now.renewed !== lease.renewed) live.push(lease);
    }
  }
}

/**
 * Scales every Deployment that wants replicas to 0, so that no replica leads from then on. Throws {@link RefusedError} if these
 * credentials may not do that; the message names what was scaled before.
 */
export async function stopDeployments(
  client: ApiClient,
  deployments: readonly OwnDeployment[],
  { say, signal }: { say: (line: string) => void; signal: AbortSignal },
): Promise<void> {
  const stopped: string[] = [];
  for (const { namespace, name } of deployments) {
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${name}/scale`;
    try {
      await client.request('patch', `${path}?fieldManager=${FIELD_MANAGER}`, {
        body: [{ op: 'add', path: '/spec/replicas', value: 0 }],
        contentType: 'application/json-patch+json',
        signal,
      });
    } catch (error) {
      if (isGone(error)) continue;
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      const done = stopped.length === 0 ? '' : ` (scaled to 0 before: ${stopped.join(', ')})`;
      throw new RefusedError(
        `${error.message}; ${stopAdvice(namespace, name)} as a user who may patch deployments/scale there${done}`,
      );
    }
    stopped.push(`${namespace}/${name}`);
    say(`Deployment ${namespace}/${name}: scaled to 0`);
  }
}
