import type { Clock } from '../kit/clock.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { isForbidden, isGone } from '../kube/errors.ts';
import { type FoundDeployment, readDeployments, strangers } from '../kube/installation/deployments.ts';
import { findInstallations, type Installation, LABELLED } from '../kube/installation/installations.ts';
import { byName, type FoundLease, type LeaseName, listLeases } from '../kube/installation/leases.ts';
import { DEPLOYMENT, FIELD_MANAGER } from '../names.ts';

/** The error with which `clean` refuses to start. The message says why, and what to do. Nothing in the cluster was changed. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

/** A Deployment of an installation. */
export type OwnDeployment = Pick<FoundDeployment, 'namespace' | 'name' | 'wanted'>;

/** The controllers that could undo the work of `clean`. */
export type OwnControllers = {
  readonly deployments: readonly OwnDeployment[];
  readonly leases: readonly FoundLease[];
  /**
   * The namespaces in which archaware's own objects may be: the configured one, and those of the installations. That of
   * the Lease, where the Secret is too, is the first if it is one of them.
   */
  readonly namespaces: readonly string[];
  /** What carries archaware's label or the name of its Lease elsewhere, as `Deployment shop/web`. It stops nothing. */
  readonly strangers: readonly string[];
};

/** What {@link findControllers} looks for. */
export type ControllersOptions = {
  readonly client: ApiClient;
  /** The namespace of `--installation`. */
  readonly installation: string | undefined;
  /** The Lease of the configuration. `stated`: whether its namespace is; if not, it counts only where there is no installation. */
  readonly lease: LeaseName & { readonly stated: boolean };
  readonly signal: AbortSignal;
};

const WATCH_MS = 500;

/**
 * Finds the controllers that could undo the work of `clean`: the Deployments of all installations, the Leases in their namespaces
 * that carry archaware's label or the configured name, and the configured Lease. Everything else that looks like one is a
 * stranger's: its account can write nothing of archaware's. With `installation`, the namespace that the user named counts in
 * addition to those that ClusterRoleBindings name.
 *
 * @throws RefusedError if these credentials may not read one of these: a controller that `clean` does not see would undo its work
 */
export function findControllers(options: ControllersOptions): Promise<OwnControllers> {
  const { client, lease, signal } = options;
  return withAdvice(async () => {
    const { installations, deployments } = await findOwn(options);
    const configured = lease.stated || installations.length === 0 ? [lease.namespace] : [];
    const all = [...configured, ...installations.map(({ namespace }) => namespace)];
    const namespaces = [...new Set(all.includes(lease.namespace) ? [lease.namespace, ...all] : all)];
    const queries = [LABELLED, byName(lease.name)];
    const lists = namespaces.flatMap((namespace) =>
      queries.map((query) => listLeases(client, namespace, query, signal)),
    );
    const leases = unique((await Promise.all(lists)).flat()).filter(
      ({ namespace, name }) => name === lease.name || installations.some((each) => each.namespace === namespace),
    );
    const others = await strangersOf(client, installations, leases, lease.name, signal);
    return { deployments, leases, namespaces, strangers: others };
  });
}

/** Finds the Deployments of all installations that want replicas now. Throws as {@link findControllers} does. */
export function findWanted(options: Omit<ControllersOptions, 'lease'>): Promise<OwnDeployment[]> {
  return withAdvice(async () => wantedOnes(await findOwn(options)));
}

async function findOwn({ client, installation, signal }: Omit<ControllersOptions, 'lease'>) {
  const installations = await installationsOf(client, installation, signal);
  return { installations, deployments: await readDeployments(client, installations, signal) };
}

async function withAdvice<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (!isForbidden(error)) throw error;
    throw new RefusedError(
      `${error.message}; clean looks for the controllers of the installation, because they would undo its work: grant "list" on ` +
        'clusterrolebindings.rbac.authorization.k8s.io, deployments.apps and leases.coordination.k8s.io (ClusterRole archaware-controller-clean), ' +
        'run it as an administrator, or name the namespace of archaware with --installation',
    );
  }
}

/** Returns all installations: one that the user does not mean would undo the work of `clean` as well. */
async function installationsOf(
  client: ApiClient,
  named: string | undefined,
  signal: AbortSignal,
): Promise<readonly Installation[]> {
  const found = await findInstallations(client, undefined, signal);
  if (found.kind === 'found' && found.installations.some(({ namespace }) => namespace === named)) {
    return found.installations;
  }
  if (named === undefined) {
    if (found.kind === 'found') return found.installations;
    throw found.error;
  }
  return [...(found.kind === 'found' ? found.installations : []), { namespace: named, accounts: undefined }];
}

/** Finds what only looks like a controller. Rights that are missing for that leave it out, because it stops nothing. */
async function strangersOf(
  client: ApiClient,
  installations: readonly Installation[],
  own: readonly FoundLease[],
  leaseName: string,
  signal: AbortSignal,
): Promise<string[]> {
  const deployments = await strangers(client, installations, signal);
  const isOwn = (lease: FoundLease) => own.some((each) => textOf(each) === textOf(lease));
  const lists = [LABELLED, byName(leaseName)].map((query) => listLeases(client, undefined, query, signal));
  const leases = await Promise.all(lists).catch((error: unknown) => {
    if (isForbidden(error)) return [];
    throw error;
  });
  return [
    ...deployments.map((name) => `Deployment ${name}`),
    ...unique(leases.flat())
      .filter((lease) => !isOwn(lease))
      .map((lease) => `Lease ${textOf(lease)}`),
  ];
}

function textOf({ namespace, name }: LeaseName): string {
  return `${namespace}/${name}`;
}

function unique(leases: readonly FoundLease[]): FoundLease[] {
  return [...new Map(leases.map((lease) => [textOf(lease), lease])).values()];
}

/**
 * Reads a Lease; undefined if there is none. It uses a list, because `clean` has the right to list Leases everywhere, but not to
 * get them.
 */
export async function findLease(
  client: ApiClient,
  { namespace, name }: LeaseName,
  signal: AbortSignal,
): Promise<FoundLease | undefined> {
  return (await listLeases(client, namespace, byName(name), signal))[0];
}

/** Returns the Deployments that want replicas, because of which `clean` refuses. */
export function wantedOnes({ deployments }: Pick<OwnControllers, 'deployments'>): OwnDeployment[] {
  return deployments.filter(({ wanted }) => wanted > 0);
}

/** Throws {@link RefusedError} if a Deployment wants replicas. */
export function refuseWanted(wanted: readonly OwnDeployment[]): void {
  const [first] = wanted;
  if (first === undefined) return;
  throw new RefusedError(`${wanted.map(wantText).join('; ')}: ${stopAdvice(first.namespace, first.name)}`);
}

/** Returns `Deployment archaware/archaware-controller wants 2 replicas`. */
export function wantText({ namespace, name, wanted }: OwnDeployment): string {
  return `Deployment ${namespace}/${name} wants ${wanted} replica${wanted === 1 ? '' : 's'}`;
}

/** Returns `… leads (Lease archaware/archaware-controller)`. */
export function leadText({ namespace, name, holder }: Pick<FoundLease, 'namespace' | 'name' | 'holder'>): string {
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
  leases: readonly FoundLease[],
  { clock, atMostMs, signal }: { clock: Clock; atMostMs: number; signal: AbortSignal },
): Promise<FoundLease[]> {
  const began = clock.monotonic();
  const open = leases.filter(({ holder }) => holder !== '');
  const live: FoundLease[] = [];
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
      if (!isForbidden(error)) throw error;
      const done = stopped.length === 0 ? '' : ` (scaled to 0 before: ${stopped.join(', ')})`;
      throw new RefusedError(
        `${error.message}; ${stopAdvice(namespace, name)} as a user who may patch deployments/scale there${done}`,
      );
    }
    stopped.push(`${namespace}/${name}`);
    say(`Deployment ${namespace}/${name}: scaled to 0`);
  }
}
