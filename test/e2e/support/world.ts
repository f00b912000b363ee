import { expectSuccess } from '../../../hack/cluster/client.ts';
import { type Cluster, type ClusterOptions, startCluster } from '../../../hack/cluster/cluster.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import type { NodeOptions } from '../../../hack/cluster/nodes.ts';
import { type Registry, startRegistry } from '../../../hack/cluster/registry.ts';
import type { RegistryOptions } from '../../../hack/cluster/registry-config.ts';
import { hasMutatingPolicies } from '../../../hack/cluster/spawn.ts';
import { TESTIMG_REPOSITORY } from '../../../testimg/fixtures.ts';
import { pushFixtures } from '../../../testimg/push.ts';
import { type Finished, type ProcessOptions, runBundle, startController } from '../../support/controller-process.ts';
import { type Guard, manifestOf130, manifestWithoutDeployment } from '../../support/manifest.ts';
import type { RunningController } from '../../support/running.ts';
import { tolerations } from './objects.ts';
import type { KubernetesObject } from './workloads.ts';

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

/** A cluster with archaware's manifest, a registry with every fixture, and ways to run the program against both. */
export type World = {
  readonly cluster: Cluster;
  readonly registry: Registry;
  /** The kubeconfig of the service account in the manifest, if there is one. */
  readonly kubeconfig: string;
  /** The fixtures that the registry took. */
  readonly tags: readonly string[];
  /** The reference of a fixture. */
  image(tag: string): string;
  /** Pushes the fixtures into another registry that asks for its account. */
  fill(registry: Registry): Promise<void>;
  /** Names more hosts as insecure, from the next `run` on. */
  allowInsecure(...hosts: readonly string[]): void;
  /** Runs the controller until `stopControllers`; resolves when it is ready. */
  run(flags?: readonly string[], options?: ProcessOptions): Promise<RunningController>;
  /** Runs another command (`clean`, `plan`) to its end, with the same kubeconfig. */
  command(args: readonly string[], options?: ProcessOptions): Promise<Finished>;
  /** Ends every controller that still runs. */
  stopControllers(signal?: NodeJS.Signals): Promise<void>;
  /** Creates a namespace in which pods can be created. */
  namespace(name: string, labels?: Readonly<Record<string, string>>): Promise<string>;
  create(...objects: readonly KubernetesObject[]): Promise<void>;
  /** What a GET answers; throws for anything but a success. */
  get(kind: Kind, namespace: string, name: string): Promise<unknown>;
  list(kind: Kind, namespace: string): Promise<readonly unknown[]>;
  /** A merge patch, or a JSON Patch where it is a list. */
  patch(kind: Kind, namespace: string, name: string, body: unknown): Promise<unknown>;
  remove(kind: Kind, namespace: string, name: string): Promise<void>;
  node(name: string): Promise<unknown>;
  /** The pods of a workload that are not being deleted. */
  pods(namespace: string, app: string): Promise<readonly unknown[]>;
  /** The notes of archaware's Events of a reason, about objects of this namespace. */
  events(namespace: string, reason: string): Promise<string[]>;
  /** Waits for the condition with a deadline that suits a shared machine. */
  eventually<T>(what: string, condition: () => Promise<T | false | undefined>): Promise<T>;
  /** Waits for an Event of archaware whose note matches. */
  eventuallyTold(namespace: string, reason: string, note: RegExp): Promise<string>;
  /** Waits until a pod's tolerations, apart from those of Kubernetes, are these; returns the pod. */
  eventuallyTolerates(namespace: string, pod: string, wanted: readonly string[]): Promise<unknown>;
  /** Everything that the service account wrote since `from` requests, Leases and Events apart. */
  writesSince(from: number): Promise<string[]>;
  requestCount(): Promise<number>;
  stop(): Promise<void>;
};

const GROUPS = {
  Pod: 'api/v1',
  Secret: 'api/v1',
  ServiceAccount: 'api/v1',
  Namespace: 'api/v1',
  Node: 'api/v1',
  Deployment: 'apis/apps/v1',
  ReplicaSet: 'apis/apps/v1',
  StatefulSet: 'apis/apps/v1',
  DaemonSet: 'apis/apps/v1',
  Job: 'apis/batch/v1',
  CronJob: 'apis/batch/v1',
  PodDisruptionBudget: 'apis/policy/v1',
  Lease: 'apis/coordination.k8s.io/v1',
  Event: 'apis/events.k8s.io/v1',
} as const;
export type Kind = keyof typeof GROUPS;

function isKind(kind: string): kind is Kind {
  return kind in GROUPS;
}

/** The path of a kind's list, of one of its objects, or of all in the cluster (`namespace` empty). */
export function pathOf(kind: Kind, namespace: string, name = ''): string {
  const scope = namespace === '' || kind === 'Node' || kind === 'Namespace' ? '' : `/namespaces/${namespace}`;
  return `/${GROUPS[kind]}${scope}/${kind.toLowerCase()}s${name === '' ? '' : `/${name}`}`;
}

/** Starts everything; about ten seconds. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const cluster = await startCluster({ auditNamespaces: ['archaware'], ...options.cluster });
  try {
    const registry = await startRegistry({ ...(cluster.node ? { node: cluster.node } : {}), ...options.registry });
    try {
      const tags = await fill(registry);
      const nodes = options.nodes ?? ['amd64', 'arm64'].map((name) => ({ name: `${name}-1`, architecture: name }));
      await Promise.all([
        ...nodes.map((node) => cluster.createNode(node)),
        options.manifest !== '' && cluster.apply(options.manifest ?? (await manifestOf(options.guard))),
      ]);
      const kubeconfig =
        options.manifest === ''
          ? cluster.kubeconfig
          : await cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
      return worldOf(cluster, registry, tags, kubeconfig);
    } catch (error) {
      await registry.remove();
      throw error;
    }
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** The single manifest for the Kubernetes that runs. */
const manifestOf = (guard?: Guard) => (hasMutatingPolicies() ? manifestWithoutDeployment(guard) : manifestOf130(guard));

async function fill(registry: Registry): Promise<string[]> {
  const { host, account, url } = registry;
  if (url.startsWith('https:')) throw new Error('the pusher does not know a test authority');
  const to = { registry: host, repository: TESTIMG_REPOSITORY, credentials: account, insecure: true };
  return (await pushFixtures(to)).pushed;
}

function worldOf(cluster: Cluster, registry: Registry, tags: readonly string[], kubeconfig: string): World {
  const { request } = cluster;
  const running = new Set<RunningController>();
  const insecure = new Set([registry.host]);
  const common = () => ['--kubeconfig', kubeconfig];

  const get: World['get'] = async (kind, namespace, name) =>
    expectSuccess(`${kind} ${namespace}/${name}`, await request('GET', pathOf(kind, namespace, name)));
  const list: World['list'] = async (kind, namespace) =>
    listAt(expectSuccess(`${kind}s of ${namespace}`, await request('GET', pathOf(kind, namespace))), 'items');
  const events: World['events'] = async (namespace, reason) =>
    (await list('Event', namespace))
      .filter((event) => at(event, 'reportingController') === 'archaware-controller' && at(event, 'reason') === reason)
      .map((event) => String(at(event, 'note')));
  const eventually: World['eventually'] = (what, condition) => cluster.waitFor(what, condition, DEADLINE_MS);

  async function stopControllers(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const all = [...running];
    running.clear();
    await Promise.all(all.map((controller) => controller.stop(signal)));
  }

  return {
    cluster,
    registry,
    tags,
    kubeconfig,
    image: (tag) => `${registry.nodeHost ?? registry.host}/${TESTIMG_REPOSITORY}:${tag}`,
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
      const hosts = ['--registries.insecure', [...insecure].join(',')];
      const controller = await startController([...common(), ...hosts, ...flags], processOptions);
      running.add(controller);
      return controller;
    },
    command: ([name = '', ...args], processOptions = {}) => runBundle([name, ...common(), ...args], processOptions),
    async namespace(name, labels = {}) {
      const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
      expectSuccess(`namespace ${name}`, await request('POST', pathOf('Namespace', ''), object));
      // Without its account a namespace takes no pods.
      await eventually(`the account of namespace ${name}`, () => get('ServiceAccount', name, 'default'));
      return name;
    },
    async create(...objects) {
      for (const object of objects) {
        const { kind, metadata } = object;
        if (!isKind(kind)) throw new Error(`add ${kind} to GROUPS`);
        expectSuccess(`${kind} ${metadata.name}`, await request('POST', pathOf(kind, metadata.namespace), object));
      }
    },
    get,
    list,
    async patch(kind, namespace, name, body) {
      return expectSuccess(`patch of ${kind} ${name}`, await request('PATCH', pathOf(kind, namespace, name), body));
    },
    async remove(kind, namespace, name) {
      const answer = await request('DELETE', pathOf(kind, namespace, name));
      // Of pods created and deleted in quick turns kube-apiserver 1.36.3 answers some deletions with 404, though they were
      // there and are gone then: 0.7% of 26,000 with nobody else about.
      if (answer.status !== 404) expectSuccess(`deletion of ${kind} ${name}`, answer);
    },
    node: (name) => get('Node', '', name),
    async pods(namespace, app) {
      const path = `${pathOf('Pod', namespace)}?labelSelector=app%3D${app}`;
      const found = listAt(expectSuccess(`pods of ${app}`, await request('GET', path)), 'items');
      return found.filter((pod) => at(pod, 'metadata', 'deletionTimestamp') === undefined);
    },
    events,
    eventually,
    eventuallyTold: (namespace, reason, note) =>
      eventually(`an Event ${reason} like ${note}`, async () =>
        (await events(namespace, reason)).find((text) => note.test(text)),
      ),
    eventuallyTolerates: (namespace, pod, wanted) =>
      eventually(`pod ${pod} to tolerate ${wanted.join(' ') || 'nothing of ours'}`, async () => {
        const found = await get('Pod', namespace, pod);
        const present = tolerations(found);
        if (present.join() === [...wanted].sort().join()) return found;
        throw new Error(`it has ${present.join(' ') || 'none'}`);
      }),
    requestCount: async () => (await cluster.auditedRequests()).length,
    async writesSince(from) {
      const requests = (await cluster.auditedRequests()).slice(from);
      return requests
        .filter(({ verb, path }) => !['get', 'list', 'watch'].includes(verb) && !/\/(leases|events)/.test(path))
        .filter(({ path }) => !path.includes('fieldManager=archaware-probe'))
        .map(({ verb, path, status }) => `${verb} ${path} ${status}`);
    },
    stopControllers,
    async stop() {
      await stopControllers('SIGKILL');
      await Promise.all([cluster.stop(), registry.remove()]);
    },
  };
}
