import type { Clock } from '../kit/clock.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { isForbidden, isGone } from '../kube/errors.ts';
import {
  type FoundDeployment,
  type FoundLease,
  getDeployment,
  getLease,
  type Installation,
  installationText,
  type LeaseName,
  readDeployment,
} from '../kube/installation.ts';
import { isCleaner } from '../kube/lease.ts';
import { FIELD_MANAGER } from '../names.ts';

/** The error with which `clean` refuses to start. The message says why, and what to do. Nothing in the cluster was changed. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

/** The controller that could undo the work of `clean`. Undefined: there is none. */
export type OwnController = {
  readonly deployment: FoundDeployment | undefined;
  readonly lease: FoundLease | undefined;
};

/** What {@link findController} looks for. */
export type OwnControllerOptions = {
  readonly client: ApiClient;
  readonly installation: Installation;
  /** The Lease of the configuration; undefined without leader election. */
  readonly lease: LeaseName | undefined;
  readonly signal: AbortSignal;
};

const WATCH_MS = 500;

/**
 * Finds the controller that could undo the work of `clean`: the Deployment of the installation, and the Lease of the configuration.
 *
 * @throws RefusedError if these credentials may not read one of them: a controller that `clean` does not see would undo its work
 */
export async function findController(options: OwnControllerOptions): Promise<OwnController> {
  const { client, installation, lease, signal } = options;
  try {
    const deployment = await getDeployment(client, installation, signal);
    return {
      deployment: deployment && readDeployment(deployment),
      lease: lease && (await getLease(client, lease, signal)),
    };
  } catch (error) {
    if (!isForbidden(error)) throw error;
    throw new RefusedError(
      `${error.message}; clean looks for the Deployment ${installationText(installation)} and its Lease, because a controller would undo ` +
        'its work: grant "get" on both there, or run it as an administrator',
    );
  }
}

/** Returns why `clean` refuses beside a Deployment: it wants replicas. Undefined if it does not. */
export function wantText(deployment: FoundDeployment | undefined): string | undefined {
  if (deployment === undefined || deployment.wanted === 0) return undefined;
  const { wanted } = deployment;
  return `Deployment ${installationText(deployment)} wants ${wanted} replica${wanted === 1 ? '' : 's'}`;
}

/** Throws {@link RefusedError} if the Deployment wants replicas. */
export function refuseWanted(deployment: FoundDeployment | undefined): void {
  const text = wantText(deployment);
  if (deployment !== undefined && text !== undefined) throw new RefusedError(`${text}: ${scaleAdvice(deployment)}`);
}

/** Returns `… leads (Lease archaware/archaware-controller)`. */
export function leadText({ namespace, name, holder }: Pick<FoundLease, 'namespace' | 'name' | 'holder'>): string {
  const verb = isCleaner(holder) ? 'is another clean that is running' : 'leads';
  return `${holder} ${verb} (Lease ${namespace}/${name})`;
}

/** Returns how to end the holder of a Lease. `deployment`: that of the installation; undefined: there is none. */
export function stopAdvice(holder: string, installation: Installation, deployment?: FoundDeployment): string {
  if (isCleaner(holder)) return 'wait until it has ended, then run clean again';
  if (wantText(deployment) !== undefined) return scaleAdvice(installation);
  const is = deployment === undefined ? 'does not exist' : 'wants 0 replicas';
  return `stop it first: Deployment ${installationText(installation)} ${is}, so end that process, or name its Deployment with --installation`;
}

const scaleAdvice = ({ namespace, name }: Installation) =>
  `stop it first, with --stop, or: kubectl -n ${namespace} scale deployment ${name} --replicas=0`;

/**
 * Watches a Lease until it was renewed, or was not renewed for its duration, at most `atMostMs`. Returns whether it was renewed. It
 * does not compare clocks of different machines.
 */
export async function isLive(
  client: ApiClient,
  lease: FoundLease,
  { clock, atMostMs, signal }: { clock: Clock; atMostMs: number; signal: AbortSignal },
): Promise<boolean> {
  if (lease.holder === '') return false;
  const began = clock.monotonic();
  while (clock.monotonic() - began <= Math.min(atMostMs, lease.durationMs + WATCH_MS)) {
    await clock.delay(WATCH_MS, signal);
    signal.throwIfAborted();
    const now = await getLease(client, lease, signal);
    if (now === undefined || now.holder === '') return false;
    if (now.renewed !== lease.renewed) return true;
  }
  return false;
}

/** Scales the Deployment to 0, so that no replica leads from then on. Throws {@link RefusedError} if these credentials may not do that. */
export async function stopDeployment(
  client: ApiClient,
  installation: Installation,
  { say, signal }: { say: (line: string) => void; signal: AbortSignal },
): Promise<void> {
  const { namespace, name } = installation;
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${name}/scale`;
  try {
    await client.request('patch', `${path}?fieldManager=${FIELD_MANAGER}`, {
      body: [{ op: 'add', path: '/spec/replicas', value: 0 }],
      signal,
    });
  } catch (error) {
    if (isGone(error)) return;
    if (!isForbidden(error)) throw error;
    throw new RefusedError(
      `${error.message}; ${scaleAdvice(installation)} as a user who may patch deployments/scale there`,
    );
  }
  say(`Deployment ${installationText(installation)}: scaled to 0`);
}
