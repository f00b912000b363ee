import type { Cluster, ClusterOptions } from '../../../hack/cluster/cluster.ts';
import type { NodeOptions } from '../../../hack/cluster/nodes.ts';
import { type Registry, startRegistry } from '../../../hack/cluster/registry.ts';
import type { RegistryOptions } from '../../../hack/cluster/registry-config.ts';
import { hasMutatingPolicies } from '../../../hack/cluster/spawn.ts';
import { TESTIMG_REPOSITORY } from '../../../testimg/fixtures.ts';
import { pushFixtures } from '../../../testimg/push.ts';
import { type Finished, type ProcessOptions, runBundle, startController } from '../../support/controller-process.ts';
import { type Guard, manifestOf130, manifestWithoutDeployment } from '../../support/manifest.ts';
import type { RunningController } from '../../support/running.ts';
import {
  accessOf,
  imageAt,
  isOfInterest,
  objectsOf,
  standInFor,
  type World,
  withoutDefaults,
} from '../../support/world.ts';
import { type Borrowed, borrowCluster } from './shared-cluster.ts';

/** How long a test waits for what should be there in a second; several people share the machine. */
export const DEADLINE_MS = 60_000;

export type WorldOptions = {
  /** Default: one node of amd64 and one of arm64, called amd64-1 and arm64-1. */
  readonly nodes?: readonly NodeOptions[];
  readonly cluster?: ClusterOptions;
  readonly registry?: RegistryOptions;
  /** Applied instead of archaware's manifest. An empty one: nothing is installed, and the program has all rights. */
  readonly manifest?: string;
  /** What the policies of the manifest let through, where it is not as it says: for other keys, and for labels. */
  readonly guard?: Guard;
};

/** A world on the real control plane, with the program in processes of its own. */
export type LiveWorld = Omit<World, 'cluster' | 'registry' | 'run' | 'command' | 'written'> & {
  readonly cluster: Cluster;
  readonly registry: Registry;
  /** The kubeconfig of the service account in the manifest, if there is one. */
  readonly kubeconfig: string;
  /** The fixtures that the registry took. */
  readonly tags: readonly string[];
  /** Pushes the fixtures into another registry that asks for its account. */
  fill(registry: Registry): Promise<void>;
  /** Names more hosts as insecure, from the next `run` on. */
  allowInsecure(...hosts: readonly string[]): void;
  run(flags?: readonly string[], options?: ProcessOptions): Promise<RunningController>;
  command(args: readonly string[], options?: ProcessOptions): Promise<Finished>;
  written(): Promise<readonly string[]>;
  /** Everything that the service account wrote since `from` requests, Leases and Events apart. */
  writesSince(from: number): Promise<string[]>;
  requestCount(): Promise<number>;
  /** Acts once everything has stopped. */
  atEnd(act: () => Promise<unknown>): void;
};

/** Starts everything, or empties the control plane of the suite before: `borrowCluster`. */
export async function startWorld(options: WorldOptions = {}): Promise<LiveWorld> {
  const filling = filledRegistry();
  const borrowed = await borrowCluster(options.cluster);
  const { cluster } = borrowed;
  try {
    const filled = await filling;
    const beside = cluster.node ? { node: cluster.node } : {};
    const registry = await startRegistry({ contentsOf: filled.registry, ...beside, ...options.registry });
    try {
      const nodes = options.nodes ?? nodesNamed('amd64-1', 'arm64-1');
      await Promise.all([
        ...nodes.map((node) => cluster.createNode(node)),
        options.manifest !== '' && cluster.apply(options.manifest ?? (await manifestOf(options.guard))),
      ]);
      const kubeconfig =
        options.manifest === ''
          ? cluster.kubeconfig
          : await cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
      return worldOf(borrowed, registry, filled.tags, kubeconfig);
    } catch (error) {
      await registry.remove();
      throw error;
    }
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** For a suite: all of its tests have the same world, for which the one that is returned stands. `needs` may skip them. */
export const worldForAll = (
  options: WorldOptions | (() => Promise<WorldOptions>) = {},
  needs?: (context: Mocha.Context) => void,
): LiveWorld =>
  standInFor([before, after], async (context) => {
    needs?.(context);
    return startWorld(typeof options === 'function' ? await options() : options);
  });

/** For `before`: skips the tests where the control plane has no MutatingAdmissionPolicies. */
export function needsMutatingPolicies(context: Mocha.Context): void {
  if (!hasMutatingPolicies()) context.skip();
}

/** Nodes whose names begin with their architectures. */
export const nodesNamed = (...names: readonly string[]): readonly NodeOptions[] =>
  names.map((name) => ({ name, architecture: name.split('-')[0] ?? '' }));

/** The single manifest for the Kubernetes that runs. */
const manifestOf = (guard?: Guard) => (hasMutatingPolicies() ? manifestWithoutDeployment(guard) : manifestOf130(guard));

type Filled = { readonly registry: Registry; readonly tags: readonly string[] };
let filling: Promise<Filled> | undefined;

/** A registry with every fixture, which is stopped: the others begin with a copy of its data, which is quicker than pushing. */
function filledRegistry(): Promise<Filled> {
  filling ??= (async () => {
    const registry = await startRegistry();
    const tags = await fill(registry);
    await registry.stop();
    return { registry, tags };
  })();
  return filling;
}

async function fill(registry: Registry): Promise<string[]> {
  const { host, account, url } = registry;
  if (url.startsWith('https:')) throw new Error('the pusher does not know a test authority');
  const to = { registry: host, repository: TESTIMG_REPOSITORY, credentials: account, insecure: true };
  return (await pushFixtures(to)).pushed;
}

function worldOf(borrowed: Borrowed, registry: Registry, tags: readonly string[], kubeconfig: string): LiveWorld {
  const { cluster } = borrowed;
  const running = new Set<RunningController>();
  const ends: (() => Promise<unknown>)[] = [];
  const insecure = new Set([registry.host]);
  const common = (words: readonly string[]) => [
    ...accessOf(words, kubeconfig),
    ...['--registries.insecure', [...insecure].join(',')],
  ];
  const written = async (from: number) =>
    (await cluster.auditedRequests())
      .slice(from)
      .filter(({ verb, path }) => !['get', 'list', 'watch'].includes(verb) && isOfInterest(path));

  async function stopControllers(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const all = [...running];
    running.clear();
    await Promise.all(all.map((controller) => controller.stop(signal)));
  }

  return {
    ...objectsOf(cluster, DEADLINE_MS),
    cluster,
    registry,
    tags,
    kubeconfig,
    image: (tag) => imageAt(registry.nodeHost ?? registry.host, tag),
    async fill(other) {
      await fill(other);
      insecure.add(other.host);
      // A loopback address as well, which has to be configured on its own.
      if (other.tokenServer) insecure.add(new URL(other.tokenServer.realm).host);
    },
    allowInsecure(...hosts) {
      for (const host of hosts) insecure.add(host);
    },
    async run(flags = [], processOptions = {}) {
      const controller = await startController([...common(flags), ...flags], processOptions);
      running.add(controller);
      return controller;
    },
    command: async ([name = '', ...args], processOptions = {}) =>
      withoutDefaults(await runBundle([name, ...common(args), ...args], processOptions)),
    written: async () => (await written(0)).map(({ verb, path }) => `${METHODS[verb] ?? verb} ${path.split('?')[0]}`),
    requestCount: async () => (await cluster.auditedRequests()).length,
    writesSince: async (from) => (await written(from)).map(({ verb, path, status }) => `${verb} ${path} ${status}`),
    stopControllers,
    atEnd: (act) => void ends.push(act),
    async stop() {
      await stopControllers('SIGKILL');
      await Promise.all([borrowed.done(), registry.remove()]);
      await Promise.all(ends.map((act) => act()));
    },
  };
}

/** Of the verbs of Kubernetes. */
const METHODS: Readonly<Record<string, string>> = { create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' };
