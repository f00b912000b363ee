import { findCluster } from '../kube/access.ts';
import { type ApiClient, type ApiRequest, createClient } from '../kube/api-client.ts';
import { type Installation, installationIn } from '../kube/installation.ts';
import { find, readServerVersion } from '../kube/read.ts';
import { DEFAULT_NAMESPACE } from '../names.ts';
import type { Clients, Context } from './surroundings.ts';
import { USER_AGENT } from './version.ts';

/** The connection to a cluster. */
export type Connection = Omit<Clients, 'ownNamespace'> & {
  /** The one that `--installation` names; in a pod that of its namespace, elsewhere the default. */
  readonly installation: Installation;
  readonly leaseNamespace: string;
};

/** The error for a cluster that archaware cannot work on. The message says why. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
}

const LEAST_MINOR = 30;
/** The connections for watches, Events and reads, in addition to those for the workers' writes. */
const SPARE_CONNECTIONS = 12;
/** After this time, a command says at a terminal to which server it connects. */
const SILENCE_MS = 1_500;
/** Two, so that a Lease request that hangs does not block the next one. */
const LEASE_CONNECTIONS = 2;

type NamedCluster = Pick<Context, 'config' | 'kubeconfig' | 'context' | 'clock' | 'signal' | 'status' | 'clients'> &
  Partial<Pick<Context, 'installation'>>;

/**
 * Connects to the cluster that the flags or the environment name, if the configuration was not read over a connection already.
 * Throws if there is no kubeconfig, no answer, or a Kubernetes before 1.30.
 */
export async function connect(context: NamedCluster, onRequest?: (request: ApiRequest) => void): Promise<Connection> {
  const { ownNamespace, ...clients } = context.clients ?? (await openClients(context, onRequest));
  const installation = context.installation ?? installationIn(ownNamespace);
  return {
    ...clients,
    installation,
    leaseNamespace: context.config.leaderElection.namespace || installation.namespace,
  };
}

/** Opens a connection of its own. Throws as {@link connect} does. */
export async function openClients(
  { config, kubeconfig, context, clock, signal, status }: NamedCluster,
  onRequest?: (request: ApiRequest) => void,
): Promise<Clients> {
  const access = findCluster({ kubeconfig, context });
  const common = {
    access,
    userAgent: USER_AGENT,
    now: clock.monotonic,
    // A name may have several addresses, and each client may use another one.
    addresses: new Set<string>(),
    ...(onRequest ? { onRequest } : {}),
  };
  const client = createClient({ ...common, connections: config.workers * 2 + SPARE_CONNECTIONS });
  const leaseClient = createClient({ ...common, connections: LEASE_CONNECTIONS });
  let isShown = false;
  const cancel = clock.after(SILENCE_MS, () => {
    isShown = true;
    status?.(`connecting to ${client.host} …`);
  });
  try {
    await checkVersion(client, signal);
  } catch (error) {
    await client.close();
    throw error;
  } finally {
    cancel();
    if (isShown) status?.('');
  }
  return {
    client,
    leaseClient,
    ownNamespace: (access.inCluster ? access.namespace : undefined) || DEFAULT_NAMESPACE,
    namespace: access.namespace || 'default',
    async close() {
      await Promise.all([client.close(), leaseClient.close()]);
    },
  };
}

async function checkVersion(client: ApiClient, signal: AbortSignal): Promise<void> {
  const text = await readServerVersion(client, signal);
  const [, major = '', minor = ''] = /^v?([0-9]+)\.([0-9]+)/.exec(text) ?? [];
  if (major === '') throw new ClusterError(`${client.host} does not report its version of Kubernetes`);
  if (Number(major) === 1 && Number(minor) < LEAST_MINOR) {
    throw new ClusterError(`${client.host} is Kubernetes ${text}; 1.${LEAST_MINOR} or later is needed`);
  }
}

/** Checks that the namespace of the Lease exists. Without it no replica could ever lead. */
export async function checkLeaseNamespace(client: ApiClient, namespace: string, signal: AbortSignal): Promise<void> {
  if ((await find(client, `/api/v1/namespaces/${namespace}`, signal)) !== undefined) return;
  throw new ClusterError(
    `namespace "${namespace}" of the Lease does not exist: apply manifests/archaware-controller.yaml, ` +
      'name another with --leaderElection.namespace, or switch it off with --leaderElection.enabled=false',
  );
}
