import { type JsonObject, numberAt, objectAt, stringAt } from '../../kit/json.ts';
import { DEPLOYMENT } from '../../names.ts';
import type { ApiClient } from '../api-client.ts';
import { find } from '../read.ts';

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
