import { type JsonObject, numberAt, objectAt, stringAt } from '../kit/json.ts';
import { DEPLOYMENT } from '../names.ts';
import type { ApiClient } from './api-client.ts';
import { find } from './read.ts';

/**
 * The Deployment that runs archaware. It is a name and not a search: anybody who may write in a namespace can give an object there
 * archaware's labels.
 */
export type Installation = { readonly namespace: string; readonly name: string };

/** The Deployment of an installation. */
export type FoundDeployment = Installation & {
  /** `spec.replicas`; 0 if the Deployment is being deleted. */
  readonly wanted: number;
  readonly ready: number;
};

/** Returns the installation that a namespace has if no name is given. */
export function installationIn(namespace: string): Installation {
  return { namespace, name: DEPLOYMENT };
}

/** Returns `archaware/archaware-controller`. */
export function installationText({ namespace, name }: Installation): string {
  return `${namespace}/${name}`;
}

/** Gets the Deployment of an installation; undefined if there is none. Throws what the client throws. */
export function getDeployment(
  client: Pick<ApiClient, 'request'>,
  { namespace, name }: Installation,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  const path = `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/deployments/${encodeURIComponent(name)}`;
  return find(client, path, signal);
}

/** Reads a Deployment. */
export function readDeployment(object: JsonObject): FoundDeployment {
  const metadata = objectAt(object, 'metadata');
  const isDeleting = stringAt(metadata, 'deletionTimestamp') !== undefined;
  return {
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') ?? '',
    wanted: isDeleting ? 0 : (numberAt(objectAt(object, 'spec'), 'replicas') ?? 1),
    ready: numberAt(objectAt(object, 'status'), 'readyReplicas') ?? 0,
  };
}

/** The namespace and the name of a Lease. */
export type LeaseName = { readonly namespace: string; readonly name: string };

/** A Lease that an archaware controller holds, or held. */
export type FoundLease = LeaseName & {
  /** Empty if nobody holds it. */
  readonly holder: string;
  /** A text that changes with each renewal. */
  readonly renewed: string;
  /** The time of the last renewal by the holder's clock, in milliseconds since 1970; 0 if the Lease does not say it. */
  readonly renewedAt: number;
  /** How long after its last renewal the holder counts as dead, in milliseconds. */
  readonly durationMs: number;
};

/** The longest leaseDuration that the configuration allows. A longer one in a Lease is not believed. */
const LONGEST_MS = 600_000;

/** Gets a Lease; undefined if there is none. */
export async function getLease(
  client: Pick<ApiClient, 'request'>,
  { namespace, name }: LeaseName,
  signal: AbortSignal,
): Promise<FoundLease | undefined> {
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  const object = await find(client, `${leases}/${encodeURIComponent(name)}`, signal);
  return object && readLease(object);
}

/** Whether the holder of a Lease has renewed it within its duration, by the clock of this machine. `now`: its wall time. */
export function isHeld({ holder, renewedAt, durationMs }: FoundLease, now: number): boolean {
  return holder !== '' && now - renewedAt <= durationMs;
}

function readLease(object: JsonObject): FoundLease {
  const metadata = objectAt(object, 'metadata');
  const spec = objectAt(object, 'spec');
  const holder = stringAt(spec, 'holderIdentity') ?? '';
  return {
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') ?? '',
    holder,
    renewed: JSON.stringify([holder, spec.renewTime, spec.leaseTransitions]),
    renewedAt: Date.parse(stringAt(spec, 'renewTime') ?? '') || 0,
    durationMs: Math.min((numberAt(spec, 'leaseDurationSeconds') ?? 15) * 1000, LONGEST_MS),
  };
}
