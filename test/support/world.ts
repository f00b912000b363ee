/**
 * A cluster with archaware's manifest, a registry with every fixture, and ways to run the program against both. `product.ts` has one
 * in the process of the test, `e2e/support/world.ts` a real one; suites of test/cli/both run on each.
 */
import { expectSuccess } from '../../hack/cluster/client.ts';
import { TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { at, type JsonObject, object, objects, text } from '../simulator/json.ts';
import type { TestCluster } from '../simulator/test-cluster.ts';
import type { Finished } from './controller-process.ts';
import { ours, runs, taints, tolerations } from './objects.ts';
import type { RunningController } from './running.ts';
import type { KubernetesObject } from './workloads.ts';

/** The input of a command in addition to its words. */
export type CommandOptions = {
  readonly environment?: Readonly<Record<string, string>>;
  /** What is typed. */
  readonly input?: string;
};

export type World = Objects & {
  readonly cluster: Pick<TestCluster, 'kubeconfig' | 'apply' | 'request' | 'createNode' | 'serviceAccountKubeconfig'>;
  /** The host of the registry. */
  readonly registry: { readonly host: string };
  /** The reference of a fixture: an image of the table in testimg/fixtures.ts. */
  image(tag: string): string;
  /** Runs the controller until `stop` or `stopControllers`; resolves when it is ready. */
  run(flags?: readonly string[], options?: CommandOptions): Promise<RunningController>;
  /**
   * Runs another command to its end, with the rights of the controller; `--kubeconfig` gives it others. The line that names no
   * configuration of the cluster is left out of stderr.
   */
  command(args: readonly string[], options?: CommandOptions): Promise<Finished>;
  /** Ends every controller that still runs. */
  stopControllers(signal?: NodeJS.Signals): Promise<void>;
  /** What the controllers wrote, Leases and Events apart: `PATCH /api/v1/nodes/amd64-1`. */
  written(): readonly string[] | Promise<readonly string[]>;
  stop(): Promise<void>;
};

/** An object by its path, or by kind, namespace (empty: none) and name. */
type Get = { (path: string): Promise<JsonObject>; (kind: Kind, namespace: string, name: string): Promise<JsonObject> };
/** Objects by their path, or by kind and namespace (empty: all). */
type List = {
  (path: string): Promise<readonly JsonObject[]>;
  (kind: Kind, namespace: string): Promise<readonly JsonObject[]>;
};
/** A merge patch, or a JSON Patch where it is a list. */
type Patch = {
  (path: string, body: unknown): Promise<JsonObject>;
  (kind: Kind, namespace: string, name: string, body: unknown): Promise<JsonObject>;
};

/** The objects of a cluster, as an administrator reads and writes them. Every function throws if a request does not succeed. */
export type Objects = {
  readonly get: Get;
  readonly list: List;
  readonly patch: Patch;
  create(...objects: readonly KubernetesObject[]): Promise<void>;
  /** Creates a namespace in which pods can be created. */
  namespace(name: string, labels?: Readonly<Record<string, string>>): Promise<string>;
  remove(kind: Kind, namespace: string, name: string): Promise<void>;
  node(name: string): Promise<JsonObject>;
  /** The pods of a workload that are not being deleted. */
  pods(namespace: string, app: string): Promise<readonly JsonObject[]>;
  /** The notes of archaware's Events of a reason, about objects of this namespace. */
  events(namespace: string, reason: string): Promise<string[]>;
  /** Waits for the condition with a deadline that suits a shared machine. */
  eventually<T>(what: string, condition: () => Promise<T | false | undefined>): Promise<T>;
  /** Waits for an Event of archaware whose note matches, about an object of the namespace, and gives the note. */
  eventuallyEvent(namespace: string, reason: string, note: RegExp): Promise<string>;
  /** Waits for a line of a controller's log that contains all of these, and gives it. */
  eventuallyLogged(controller: RunningController, ...words: readonly string[]): Promise<string>;
  /** Waits until a pod's tolerations, apart from those of Kubernetes, are these; returns the pod. */
  eventuallyTolerates(namespace: string, pod: string, wanted: readonly string[]): Promise<JsonObject>;
  /** Waits until a pod runs; returns it. */
  eventuallyRuns(namespace: string, pod: string): Promise<JsonObject>;
  /** Waits until so many pods of a workload are there, and all of them run and are right; returns them. */
  eventuallyAllRun(
    namespace: string,
    app: string,
    count: number,
    isRight?: (pod: JsonObject) => boolean,
  ): Promise<readonly JsonObject[]>;
  /** Waits until every node carries the taint of its architecture. */
  eventuallyTainted(): Promise<void>;
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

/** The reference of a fixture in the registry at the host. */
export function imageAt(host: string, tag: string): string {
  return `${host}/${TESTIMG_REPOSITORY}:${tag}`;
}

/** The values of archaware's taint on a node. */
export function taintsOf(node: JsonObject): string[] {
  return objects(at(node, 'spec', 'taints'))
    .filter(({ key }) => key === 'supported-arch')
    .map(({ value }) => text(value));
}

/** What a command printed, without the line that names no configuration of the cluster. */
export function withoutDefaults(finished: Finished): Finished {
  return { ...finished, stderr: finished.stderr.replace(/^archaware is not installed here .*\n/, '') };
}

/** The flags that name the cluster, unless the words do. */
export function accessOf(words: readonly string[], kubeconfig: string): readonly string[] {
  return words.includes('--kubeconfig') ? [] : ['--kubeconfig', kubeconfig];
}

/**
 * Whether a request is one that tests look at: Leases, Events, the ConfigMap of what the leader knows, and the dry runs that try the
 * protection of DaemonSets are not.
 */
export function isOfInterest(path: string): boolean {
  const isAside = /\/(leases|events)(\/|\?|$)|\/configmaps(\/archaware-controller-status)?(\?|$)/.test(path);
  return !isAside && !path.includes('fieldManager=archaware-probe');
}

/** Returns functions that read and write the objects of a cluster. `deadlineMs`: the longest wait for a condition. */
export function objectsOf(cluster: Pick<TestCluster, 'request' | 'waitFor'>, deadlineMs?: number): Objects {
  const { request } = cluster;
  const eventually: Objects['eventually'] = (what, condition) => cluster.waitFor(what, condition, deadlineMs);
  const get = async (kindOrPath: string, namespace?: string, name?: string) => {
    const path = locate(kindOrPath, namespace, name);
    return object(expectSuccess(path, await request('GET', path)));
  };
  const list = async (kindOrPath: string, namespace?: string) => objects((await get(kindOrPath, namespace)).items);
  const patch = async (kindOrPath: string, ...rest: readonly unknown[]) => {
    const path = rest.length === 1 ? kindOrPath : locate(kindOrPath, text(rest[0]), text(rest[1]));
    return object(expectSuccess(`patch of ${path}`, await request('PATCH', path, rest.at(-1))));
  };
  const events: Objects['events'] = async (namespace, reason) =>
    (await list('Event', namespace))
      .filter((event) => event.reportingController === 'archaware-controller' && event.reason === reason)
      .map((event) => text(event.note));
  const pods: Objects['pods'] = async (namespace, app) => {
    const found = await list(`${pathOf('Pod', namespace)}?labelSelector=app%3D${app}`);
    return found.filter((pod) => at(pod, 'metadata', 'deletionTimestamp') === undefined);
  };
  return {
    get,
    list,
    patch,
    pods,
    async create(...created) {
      for (const each of created) {
        const { kind, metadata } = each;
        expectSuccess(`${kind} ${metadata.name}`, await request('POST', locate(kind, metadata.namespace, ''), each));
      }
    },
    async namespace(name, labels = {}) {
      const created = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
      expectSuccess(`namespace ${name}`, await request('POST', pathOf('Namespace', ''), created));
      // Without its account a namespace takes no pods.
      await eventually(`the account of namespace ${name}`, () => get('ServiceAccount', name, 'default'));
      return name;
    },
    async remove(kind, namespace, name) {
      const answer = await request('DELETE', pathOf(kind, namespace, name));
      // Of pods created and deleted in quick turns kube-apiserver 1.36.3 answers some deletions with 404, though they were
      // there and are gone then: 0.7% of 26,000 with nobody else about.
      if (answer.status !== 404) expectSuccess(`deletion of ${kind} ${name}`, answer);
    },
    node: (name) => get('Node', '', name),
    events,
    eventually,
    eventuallyEvent: (namespace, reason, note) =>
      eventually(`an Event ${reason} like ${note}`, async () =>
        (await events(namespace, reason)).find((found) => note.test(found)),
      ),
    eventuallyLogged: (controller, ...words) =>
      eventually(`a line of the log with ${words.join(', ')}`, async () =>
        controller.logs().find((line) => words.every((word) => line.includes(word))),
      ),
    eventuallyTolerates: (namespace, pod, wanted) =>
      eventually(`pod ${pod} to tolerate ${wanted.join(' ') || 'nothing of ours'}`, async () => {
        const found = await get('Pod', namespace, pod);
        const present = tolerations(found);
        if (present.join() === [...wanted].sort().join()) return found;
        throw new Error(`it has ${present.join(' ') || 'none'}`);
      }),
    eventuallyRuns: (namespace, pod) =>
      eventually(`pod ${pod} to run`, async () => {
        const found = await get('Pod', namespace, pod);
        return runs(found) && found;
      }),
    eventuallyAllRun: (namespace, app, count, isRight = () => true) =>
      eventually(`${count} pods of ${app} to run`, async () => {
        const found = await pods(namespace, app);
        return found.length === count && found.every((pod) => runs(pod) && isRight(pod)) && found;
      }),
    async eventuallyTainted() {
      await eventually('every node to be tainted', async () =>
        (await list('Node', '')).every((node) => {
          const present = taints(node).filter((taint) => taint.startsWith('supported-arch='));
          return present.join() === ours(text(at(node, 'status', 'nodeInfo', 'architecture'))).join();
        }),
      );
    },
  };
}

function locate(kindOrPath: string, namespace?: string, name?: string): string {
  if (namespace === undefined) return kindOrPath;
  if (!isKind(kindOrPath)) throw new Error(`add ${kindOrPath} to GROUPS`);
  return pathOf(kindOrPath, namespace, name);
}

/** Starts something for a suite in one hook and stops it in another; what is returned stands for it in between. */
export function standInFor<T extends { stop(): Promise<void> }>(
  [begin, end]: readonly [Mocha.HookFunction, Mocha.HookFunction],
  start: (context: Mocha.Context) => Promise<T>,
): T {
  let started: T | undefined;
  begin(async function () {
    started = await start(this);
  });
  end(() => started?.stop());
  return new Proxy<T>(Object.create(null), { get: (_, name) => started && Reflect.get(started, name) });
}
