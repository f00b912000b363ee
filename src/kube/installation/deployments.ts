import { type JsonObject, numberAt, objectAt, stringAt } from '../../kit/json.ts';
import { APP_LABEL, DEPLOYMENT } from '../../names.ts';
import type { ApiClient } from '../api-client.ts';
import { isForbidden } from '../errors.ts';
import { readAll } from '../list.ts';
import { type Installation, LABELLED } from './installations.ts';

/** A Deployment that runs archaware, or carries its label. */
export type FoundDeployment = {
  readonly namespace: string;
  readonly name: string;
  /** `spec.replicas`; 0 if the Deployment is being deleted. */
  readonly wanted: number;
  readonly ready: number;
};

/** Lists the Deployments of an installation: those in its namespace that run as one of its service accounts. */
export async function deploymentsOf<T>(
  client: Pick<ApiClient, 'request'>,
  installation: Installation,
  read: (object: JsonObject) => T | undefined,
  signal: AbortSignal,
): Promise<T[]> {
  const path = `/apis/apps/v1/namespaces/${encodeURIComponent(installation.namespace)}/deployments`;
  return readAll(client, path, (object) => (isOf(object, installation) ? read(object) : undefined), signal);
}

/** Reads the Deployments of some installations. */
export async function readDeployments(
  client: Pick<ApiClient, 'request'>,
  installations: readonly Installation[],
  signal: AbortSignal,
): Promise<FoundDeployment[]> {
  return (await Promise.all(installations.map((each) => deploymentsOf(client, each, readDeployment, signal)))).flat();
}

/**
 * Lists the Deployments that carry archaware's label or name and belong to no installation, as `namespace/name`. They decide
 * nothing and stop nothing. None if these credentials may not list Deployments everywhere.
 */
export async function strangers(
  client: Pick<ApiClient, 'request'>,
  installations: readonly Installation[],
  signal: AbortSignal,
): Promise<string[]> {
  const read = (object: JsonObject) => {
    const { namespace, name } = readDeployment(object);
    const isOurs = installations.some((each) => each.namespace === namespace && isOf(object, each));
    return isOurs ? undefined : `${namespace}/${name}`;
  };
  try {
    return await readAll(client, `/apis/apps/v1/deployments?${LABELLED}`, read, signal);
  } catch (error) {
    if (isForbidden(error)) return [];
    throw error;
  }
}

/** Whether a Deployment in the namespace of an installation belongs to it. */
function isOf(object: JsonObject, { accounts }: Installation): boolean {
  const metadata = objectAt(object, 'metadata');
  if (accounts === undefined) {
    return (
      stringAt(objectAt(metadata, 'labels'), APP_LABEL) === DEPLOYMENT || stringAt(metadata, 'name') === DEPLOYMENT
    );
  }
  const template = ['spec', 'template', 'spec'].reduce(objectAt, object);
  return accounts.has(stringAt(template, 'serviceAccountName') || 'default');
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
