import type { Clock } from '../../kit/clock.ts';
import { isSame } from '../../kit/json.ts';
import type { Controller, Queues } from '../../kube/control-loop.ts';
import type { StoreChange } from '../../kube/watch/collection.ts';
import { type Node, nodeArchitecture, taintKinds } from '../../placement/nodes/node.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import type { DaemonSetController } from '../daemonset/controller.ts';
import { createTally } from '../node/witnesses.ts';
import type { PodController } from '../pod/controller.ts';
import type { Watches } from '../watches.ts';
import type { WrongNodes } from '../wrong-node/controller.ts';

/** Starts without nodes. `onChange` is called when an architecture joined or left, which may be long after its nodes did. */
export function createCluster(witnesses: Watches['witnesses'], clock: Pick<Clock, 'after'>, onChange: () => void) {
  const taints = createTally(taintKinds);
  let architectures = witnesses.architectures();
  let cancel: (() => void) | undefined;

  function check(): void {
    cancel?.();
    const now = witnesses.architectures();
    const dueInMs = witnesses.dueInMs();
    cancel = dueInMs === undefined ? undefined : clock.after(dueInMs, check);
    if (now === architectures) return;
    architectures = now;
    onChange();
  }

  return {
    /** Returns the architectures that count for objects which follow the cluster's. They change only with `onChange`. */
    architectures: (): readonly string[] => architectures,
    taints: taints.all,
    begin(nodes: Iterable<Node>): void {
      for (const node of nodes) taints.count(node, 1);
      check();
    },
    /** Counts a change. Returns whether a taint appeared in the cluster or disappeared from it. */
    changed({ now, before }: Pick<StoreChange<Node>, 'now' | 'before'>): boolean {
      const appeared = taints.count(now, 1);
      const went = taints.count(before, -1);
      check();
      return appeared || went;
    },
    end: (): void => cancel?.(),
  };
}

/** The stores of the watches, and their listeners. */
export type WatchedStores = Pick<Watches, 'listeners' | 'fetchDaemonSet' | 'fetchNode' | 'witnesses'> & {
  readonly [kind in 'pods' | 'nodes' | 'namespaces' | 'daemonSets']: Pick<Watches[kind], 'store'>;
};

/** Where the changes that the watches show go: the queues of a term, and what else it has to hear of them. */
export type Arrivals = {
  readonly watches: Omit<WatchedStores, 'fetchDaemonSet' | 'fetchNode' | 'witnesses'>;
  readonly pod: Pick<PodController, 'isUpToDate' | 'lookupEnded' | 'followers' | 'invalidate'>;
  readonly daemonSet: Pick<DaemonSetController, 'nextToRoll' | 'lookupEnded'>;
  readonly queues: Readonly<
    Record<'pod' | 'daemonSet' | 'node', Pick<Controller, 'enqueue' | 'enqueueAfter' | 'forget'>>
  >;
  readonly forEach: Queues['forEach'];
  readonly cluster: Pick<ReturnType<typeof createCluster>, 'changed'>;
  /** Gets each change of a node, for Events. */
  readonly onNode: ((change: Pick<StoreChange<Node>, 'now' | 'before'>) => void) | undefined;
  readonly wrongNodes: Pick<WrongNodes, 'podChanged' | 'nodeChanged' | 'lookupEnded' | 'settingsChanged'> | undefined;
};

/** Queues everything that is there, and from now on what changes. */
export function listen(arrivals: Arrivals): void {
  arrivals.watches.listeners.pod = (change) => podChanged(arrivals, change);
  arrivals.watches.listeners.daemonSet = (change) => daemonSetChanged(arrivals, change);
  arrivals.watches.listeners.node = (change) => nodeChanged(arrivals, change);
  arrivals.watches.listeners.namespace = (change) => namespaceChanged(arrivals, change);
  queueWorkloads(arrivals);
  queueNodes(arrivals);
}

/** Queues nothing that changes from now on. */
export function stopListening({ watches }: Arrivals): void {
  for (const kind of ['pod', 'node', 'namespace', 'daemonSet'] as const) watches.listeners[kind] = undefined;
}

function podChanged({ pod, queues, wrongNodes }: Arrivals, { key, now, before }: StoreChange<Pod>): void {
  // A held or waiting pod that is gone would otherwise keep its timer for minutes.
  if (now === undefined) queues.pod.forget(key);
  if (now === undefined || !pod.isUpToDate(key, now)) queues.pod.enqueue(key);
  if (now?.nodeName !== before?.nodeName || now?.broken !== before?.broken) wrongNodes?.podChanged(key);
}

function daemonSetChanged({ daemonSet, queues }: Arrivals, { key, now }: StoreChange<DaemonSet>): void {
  if (now === undefined) queues.daemonSet.forget(key);
  queues.daemonSet.enqueue(key);
  const next = daemonSet.nextToRoll();
  if (next !== undefined) queues.daemonSet.enqueue(next);
}

function nodeChanged(arrivals: Arrivals, { key, now, before }: StoreChange<Node>): void {
  const { queues, cluster, wrongNodes } = arrivals;
  if (now === undefined) queues.node.forget(key);
  queues.node.enqueue(key);
  arrivals.onNode?.({ now, before });
  const isTaintNew = cluster.changed({ now, before });
  const isOther = (now && architectureOf(now)) !== (before && architectureOf(before));
  if (isOther || !isSame(now?.taints, before?.taints)) wrongNodes?.nodeChanged(key, isOther);
  if (isTaintNew) queueDaemonSets(arrivals);
}

function architectureOf(node: Node): string | undefined {
  return node.deleting ? undefined : nodeArchitecture(node);
}

function namespaceChanged(arrivals: Arrivals, change: StoreChange<Namespace>): void {
  if (!changesPlacement(change)) return;
  const { watches, queues, forEach } = arrivals;
  const prefix = `${change.key}/`;
  forEach(watches.pods.store.keys(), (key) => {
    if (key.startsWith(prefix)) decideAgain(arrivals, key);
  });
  forEach(watches.daemonSets.store.keys(), (key) => {
    if (key.startsWith(prefix)) queues.daemonSet.enqueue(key);
  });
}

/** Whether a change of a namespace may change the decisions for its pods and DaemonSets. */
export function changesPlacement({ now, before }: StoreChange<Namespace>): boolean {
  if (now === undefined || before === undefined) return now !== undefined;
  return now.preferred !== before.preferred || JSON.stringify(now.labels) !== JSON.stringify(before.labels);
}

/** Queues what waits for an image, after its lookup has ended. */
export function lookupEnded({ pod, daemonSet, queues, forEach, wrongNodes }: Arrivals, canonical: string): void {
  forEach(pod.lookupEnded(canonical), ({ key, inMs }) => queues.pod.enqueueAfter(key, inMs));
  forEach(daemonSet.lookupEnded(canonical), ({ key, inMs }) => queues.daemonSet.enqueueAfter(key, inMs));
  wrongNodes?.lookupEnded(canonical);
}

/** Queues everything that may be decided differently after a change of the settings or of the registries. */
export function settingsChanged(arrivals: Arrivals): void {
  queueWorkloads(arrivals);
  arrivals.wrongNodes?.settingsChanged();
}

/** Decides again what follows the cluster's architectures. */
export function architecturesChanged(arrivals: Arrivals): void {
  arrivals.forEach(arrivals.pod.followers(), (key) => decideAgain(arrivals, key));
  queueDaemonSets(arrivals);
}

function decideAgain({ pod, queues }: Arrivals, key: string): void {
  pod.invalidate(key);
  queues.pod.enqueue(key);
}

function queueWorkloads(arrivals: Arrivals): void {
  const { queues, forEach } = arrivals;
  const pods = arrivals.watches.pods.store;
  // The images of the pods that have waited longest are looked up first.
  const gated = [...pods.values()].filter((each) => each.gated !== undefined);
  gated.sort((one, other) => one.createdAt - other.createdAt);
  forEach(gated, ({ namespace, name }) => queues.pod.enqueue(`${namespace}/${name}`));
  forEach(pods.keys(), queues.pod.enqueue);
  queueDaemonSets(arrivals);
}

function queueDaemonSets({ watches, queues, forEach }: Arrivals): void {
  forEach(watches.daemonSets.store.keys(), queues.daemonSet.enqueue);
}

/** Queues every node. */
export function queueNodes({ watches, queues, forEach }: Arrivals): void {
  forEach(watches.nodes.store.keys(), queues.node.enqueue);
}
