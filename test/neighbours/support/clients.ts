import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Cluster } from '../../../hack/cluster/cluster.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { binaries } from '../../../hack/cluster/spawn.ts';
import { attempt } from '../../../hack/programs.ts';
import type { Helm } from '../../e2e/support/helm.ts';
import { needsBinaries } from '../../e2e/support/programs.ts';
import type { LiveWorld } from '../../e2e/support/world.ts';
import type { KubernetesObject } from '../../support/workloads.ts';

/** A program with which people apply the objects of a repository. */
export type Client = {
  readonly name: string;
  /** Applies these objects. Throws with what the program printed if it failed. */
  apply(namespace: string, objects: readonly KubernetesObject[]): Promise<void>;
  /** Returns what the program reports as different from these objects; empty: nothing. Absent: it reports no differences. */
  differences?(namespace: string, objects: readonly KubernetesObject[]): Promise<string>;
  /** Goes back to the revision before. Absent: the program has no such command. */
  rollBack?(namespace: string): Promise<void>;
  /** Applies objects of which the API server refuses one, and goes back by itself. Throws if it could not go back. */
  applyOrGoBack?(namespace: string, objects: readonly KubernetesObject[]): Promise<void>;
};

const PROGRAMS = ['helm', 'helm3', 'argocd', 'flux'];
const CHART = fileURLToPath(new URL('chart', import.meta.url));
const RELEASE = 'agent';

export const needsClients = (context: Mocha.Context, programs = PROGRAMS): void =>
  needsBinaries(context, 'hack/cluster/build.sh and hack/cluster/build-neighbours.sh', programs);

/** `kubectl apply` and `kubectl diff`; `flags` are added to both. */
export function kubectlClient(world: LiveWorld, ...flags: readonly string[]): Client {
  const run = async (verb: string, objects: readonly KubernetesObject[]) => {
    const input = objects.map((object) => JSON.stringify(object)).join('\n---\n');
    return world.cluster.kubectl([verb, ...flags, '-f', '-'], { input });
  };
  return {
    name: ['kubectl apply', ...flags].join(' '),
    async apply(_, objects) {
      const { code, stdout, stderr } = await run('apply', objects);
      if (code !== 0) throw new Error(stdout + stderr);
    },
    async differences(_, objects) {
      const { code, stdout, stderr } = await run('diff', objects);
      return code === 0 ? '' : stdout + stderr;
    },
  };
}

/** Helm with a chart that prints its values. `goBack`: the flag with which a failed upgrade is rolled back. */
export function helmClient(name: string, helm: Helm, goBack: string): Client {
  const run = (namespace: string, args: readonly string[], objects?: readonly KubernetesObject[]) =>
    helm.must(['--namespace', namespace, ...args], objects && { objects });
  const last = async (namespace: string) => {
    const history: unknown = JSON.parse(await run(namespace, ['history', RELEASE, '--output', 'json']));
    return Array.isArray(history) ? history.at(-1) : undefined;
  };
  return {
    name,
    async apply(namespace, objects) {
      await run(namespace, ['upgrade', '--install', RELEASE, CHART], objects);
    },
    async rollBack(namespace) {
      await run(namespace, ['rollback', RELEASE]);
    },
    async applyOrGoBack(namespace, objects) {
      const failure = await run(namespace, ['upgrade', RELEASE, CHART, goBack, '--timeout', '2m'], objects).then(
        () => 'it did not fail',
        String,
      );
      const { status, description } = Object(await last(namespace));
      if (status !== 'deployed' || !String(description).startsWith('Rollback')) {
        throw new Error(`${status} ${description}: ${failure}`);
      }
    },
  };
}

/** How an Application of Argo CD is set. */
export type ArgoOptions = {
  /** The sync option `ServerSideApply=true`. */
  readonly serverSideApply?: boolean;
  /** The compare option `ServerSideDiff=true`. */
  readonly serverSideDiff?: boolean;
  /** The field `ignoreDifferences`. */
  readonly ignore?: unknown;
};

/** Argo CD's own sync and comparison. */
export function argoClient(world: LiveWorld, name: string, options: ArgoOptions = {}): Client {
  return {
    name,
    async apply(_, objects) {
      await argoSync(world.cluster, objects, options);
    },
    async differences(_, objects) {
      const found = await argoDifferences(world.cluster, objects, options);
      return Object.keys(found).length === 0 ? '' : JSON.stringify(found);
    },
  };
}

/** Syncs. Returns what the result says of each object, and what Argo CD's controller would log. */
export async function argoSync(
  { kubeconfig }: Pick<Cluster, 'kubeconfig'>,
  objects: readonly object[],
  options: ArgoOptions,
): Promise<{ readonly messages: readonly unknown[]; readonly log: string }> {
  const { printed, log } = await run('argocd', { kubeconfig, objects, sync: true, ...options });
  return { messages: listAt(printed, 'messages'), log };
}

/** The objects that Argo CD calls OutOfSync, each with the change that a sync would make. */
export async function argoDifferences(
  { kubeconfig }: Pick<Cluster, 'kubeconfig'>,
  objects: readonly object[],
  options: ArgoOptions,
): Promise<object> {
  return Object(at(await ask('argocd', { kubeconfig, objects, ...options }), 'outOfSync'));
}

/** Flux's own server-side apply: what its kustomize-controller does, and the drift detection of its helm-controller. */
export function fluxClient(world: LiveWorld): Client {
  const run = (what: string, objects: readonly KubernetesObject[], owner = 'kustomize-controller') =>
    ask('flux', { kubeconfig: world.cluster.kubeconfig, objects, owner, do: what });
  return {
    name: 'Flux',
    async apply(_, objects) {
      await run('apply', objects);
      await run('wait', objects);
    },
    async differences(_, objects) {
      const actions = Object.entries(Object(at(await run('diff', objects), 'actions')));
      const changed = actions.filter(([, action]) => action !== 'unchanged');
      const drift = listAt(await run('drift', objects, 'helm-controller'), 'changes');
      const drifted = drift.filter((one) => at(one, 'Type') !== 'none');
      return changed.length + drifted.length === 0 ? '' : JSON.stringify({ changed, drifted });
    },
  };
}

async function ask(program: string, input: object): Promise<unknown> {
  return (await run(program, input)).printed;
}

/** Runs a program that takes JSON and prints JSON. Throws with what it printed if it failed. */
async function run(program: string, input: object): Promise<{ readonly printed: unknown; readonly log: string }> {
  const { code, stdout, stderr } = await attempt(join(binaries(), program), [], { input: JSON.stringify(input) });
  if (code !== 0) throw new Error(`${program}: ${stderr}`);
  return { printed: stdout.trim() === '' ? {} : JSON.parse(stdout), log: stderr };
}
