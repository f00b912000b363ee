import type { Clock } from '../kit/clock.ts';
import { type JsonObject, objectAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { find, withQuery } from '../kube/read.ts';
import type { StoreChange, Stored } from '../kube/watch/collection.ts';
import { createReflector, type Reflector, type ReflectorOptions } from '../kube/watch/reflector.ts';
import { pathOf, type WriteTarget } from '../kube/writer.ts';
import { isSameNode, type Node, readNode } from '../placement/nodes/node.ts';
import { type DaemonSet, readDaemonSet } from '../placement/objects/daemonset.ts';
import { type Namespace, readNamespace } from '../placement/objects/namespace.ts';
import { type Pod, readPod } from '../placement/objects/pod.ts';
import { keptDaemonSet, keptPod, withBoundedLabels } from '../placement/objects/too-large.ts';
import type { Telemetry } from './controller-options.ts';
import { createWitnesses } from './node/witnesses.ts';

/** The watched objects of each kind, with listeners for changes, which may be replaced. */
export type Watches = ReturnType<typeof createWatches>;

export type Listeners = {
  pod?: ((change: StoreChange<Pod>) => void) | undefined;
  node?: ((change: StoreChange<Node>) => void) | undefined;
  namespace?: ((change: StoreChange<Namespace>) => void) | undefined;
  daemonSet?: ((change: StoreChange<DaemonSet>) => void) | undefined;
  /** Called whenever the API server has opened a watch of DaemonSets. */
  daemonSetsOpened?: (() => void) | undefined;
};

type Watched = ReadonlySet<'pods' | 'nodes' | 'namespaces' | 'daemonsets'>;

/** The part of the cluster to watch. Nodes are always watched, all of them. */
export type Scope = {
  /** Only this namespace; undefined: all. */
  readonly namespace: string | undefined;
  /** Only pods and DaemonSets that match this label selector; undefined: all. */
  readonly labels: string | undefined;
};

type WatchesOptions = {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly kinds: Watched;
  /** Default: everything. */
  readonly scope?: Scope;
  /** Called with each pod that arrives, for a command that needs more of it than the replicas keep. */
  readonly onPod?: (object: JsonObject, pod: Pod) => void;
  readonly telemetry?: Partial<Telemetry>;
  /** Milliseconds for which a refused first list is retried; default: half a minute. */
  readonly refusedMs?: number;
};

/** Creates the four reflectors. Only those of `kinds` run; the others count as synced and stay empty. */
export function createWatches(options: WatchesOptions) {
  const { client, kinds, scope } = options;
  const listeners: Listeners = {};
  const lastRead = ({ namespace, name }: JsonObject): Pod | undefined => pods.store.get(`${namespace}/${name}`);
  const pods: Reflector<Pod> = reflect<Pod>(options, 'pods', {
    path: namespacedPath('/api/v1', 'pods', scope),
    read(object, isReset) {
      const pod = readPod(object, isReset ? undefined : lastRead(objectAt(object, 'metadata')));
      options.onPod?.(object, pod);
      return keptPod(pod);
    },
    keyOf: namespaced,
    onChange: (change) => listeners.pod?.(change),
  });
  const witnesses = createWitnesses(options.clock);
  const nodes: Reflector<Node> = reflect<Node>(options, 'nodes', {
    path: '/api/v1/nodes',
    // Nodes and namespaces are few, and no tenant writes them; of what a kubelet writes to its node, only labels have no limit.
    read: (object) => withBoundedLabels(readNode(object)),
    keyOf: ({ name }) => name,
    onChange(change) {
      const { now, before } = change;
      // Kubelets write the status of their nodes again and again, and nearly never change anything that is read.
      if (now !== undefined && before !== undefined && isSameNode(now, before)) return;
      witnesses.seen(change, !nodes.synced());
      listeners.node?.(change);
    },
  });
  const namespaces: Reflector<Namespace> = reflect<Namespace>(options, 'namespaces', {
    path: namespacesPath(scope),
    read: (object) => withBoundedLabels(readNamespace(object)),
    keyOf: ({ name }) => name,
    onChange: (change) => listeners.namespace?.(change),
  });
  const daemonSets = reflect<DaemonSet>(options, 'daemonsets', {
    path: namespacedPath('/apis/apps/v1', 'daemonsets', scope),
    read: (object) => keptDaemonSet(readDaemonSet(object)),
    keyOf: namespaced,
    onChange: (change) => listeners.daemonSet?.(change),
    onOpened: () => listeners.daemonSetsOpened?.(),
  });
  const all = { pods, nodes, namespaces, daemonsets: daemonSets } as const;
  const running = Object.entries(all).filter(([kind]) => [...kinds].some((wanted) => wanted === kind));

  return {
    ...{ pods, nodes, namespaces, daemonSets, listeners },
    /** The cluster's architectures that count for objects which follow them. */
    witnesses: { architectures: witnesses.architectures, dueInMs: witnesses.dueInMs },
    /** Reads a DaemonSet past the watch; undefined if it is gone. Throws what the client throws. */
    async fetchDaemonSet(of: DaemonSet, signal: AbortSignal): Promise<DaemonSet | undefined> {
      const object = await find(client, pathOf({ ...of, kind: 'DaemonSet' }), signal);
      const daemonSet = object && readDaemonSet(object);
      return daemonSet?.uid === of.uid ? keptDaemonSet(daemonSet) : undefined;
    },
    /** Reads a node past the watch, for a write that conflicted with another writer; undefined if it is gone. */
    async fetchNode(name: string, signal: AbortSignal): Promise<Node | undefined> {
      const object = await find(client, pathOf({ kind: 'Node', name }), signal);
      return object && withBoundedLabels(readNode(object));
    },
    /** Returns the version of an object as the watch of its kind has it; undefined: it has none. */
    versionOf({ kind, namespace = '', name }: WriteTarget): string | undefined {
      if (kind === 'Node' || kind === 'Namespace')
        return (kind === 'Node' ? nodes : namespaces).store.get(name)?.resourceVersion;
      return (kind === 'Pod' ? pods : daemonSets).store.get(`${namespace}/${name}`)?.resourceVersion;
    },
    /** Returns the kinds whose first list is not complete. */
    notSynced: (): string[] => running.flatMap(([kind, reflector]) => (reflector.synced() ? [] : kind)),
    /** Returns since when the watch of each kind is broken, in milliseconds of the monotonic clock; undefined if it works. */
    health: () => running.map(([kind, reflector]) => ({ kind, ...reflector.health() })),
    async whenSynced(): Promise<void> {
      await Promise.all(running.map(([, reflector]) => reflector.whenSynced));
    },
    /** Lists and watches until the signal aborts. Rejects if the first list of a kind is refused. */
    async run(signal: AbortSignal): Promise<void> {
      await Promise.all(running.map(([, reflector]) => reflector.run(signal)));
    },
  };
}

/** Creates the reflector of a kind. What it has to report is reported under this name. */
function reflect<T extends Stored>(
  { client, clock, telemetry = {}, refusedMs }: WatchesOptions,
  kind: string,
  how: Pick<ReflectorOptions<T>, 'path' | 'read' | 'keyOf' | 'onChange' | 'onOpened'>,
): Reflector<T> {
  return createReflector<T>({
    ...how,
    client,
    clock,
    onRestart: (reason) => telemetry.watchRestarted?.(kind, reason),
    onTrouble: (attempt, reason) => telemetry.watchFails?.(kind, attempt, reason),
    onWorking: () => telemetry.watchWorks?.(kind),
    onHeard: telemetry.heard,
    refusedMs,
  });
}

/** Joined and not concatenated, because it is kept: V8 keeps a concatenated text as a tree of its parts. */
function namespaced({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return [namespace, name].join('/');
}

function namespacedPath(group: string, resource: string, scope: Scope | undefined): string {
  const within = scope?.namespace === undefined ? '' : `/namespaces/${encodeURIComponent(scope.namespace)}`;
  const query = scope?.labels === undefined ? '' : `labelSelector=${encodeURIComponent(scope.labels)}`;
  return withQuery(`${group}${within}/${resource}`, query);
}

function namespacesPath(scope: Scope | undefined): string {
  const name = scope?.namespace;
  const query = name === undefined ? '' : `fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`;
  return withQuery('/api/v1/namespaces', query);
}

/** Returns the kinds that a process must watch: nodes always (for their architectures), namespaces for everything that is in one. */
export function kindsFor({
  loops,
  webhook,
}: {
  readonly loops: readonly string[];
  readonly webhook: { readonly enabled: boolean };
}): Watched {
  const [pods, daemonsets] = [loops.includes('pods'), loops.includes('daemonsets')];
  return new Set([
    'nodes',
    ...(pods ? (['pods'] as const) : []),
    ...(daemonsets ? (['daemonsets'] as const) : []),
    ...(pods || daemonsets || webhook.enabled ? (['namespaces'] as const) : []),
  ]);
}
