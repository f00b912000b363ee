import { createBootstrap } from '../controllers/bootstrap.ts';
import { createDaemonSetController } from '../controllers/daemonset/controller.ts';
import type { ImageSource } from '../controllers/images.ts';
import { changesPlacement } from '../controllers/namespace.ts';
import { createArchitectureChanges } from '../controllers/node/architecture-changes.ts';
import { createNodeController } from '../controllers/node/controller.ts';
import { createHeldBack } from '../controllers/node/held-back.ts';
import { createPoolNodes, type PoolNodesOptions } from '../controllers/node/pool-nodes.ts';
import { createTally } from '../controllers/node/tally.ts';
import { createUnmanagedTaints, type UnmanagedTaintsOptions } from '../controllers/node/unmanaged-taints.ts';
import type { PlacementState } from '../controllers/placement-state.ts';
import { createPodController } from '../controllers/pod/controller.ts';
import type { Clock } from '../kit/clock.ts';
import { createTurns, inTurns } from '../kit/fairness/turns.ts';
import { type Controller, createController, type Failure, type Reconciler, type Result } from '../kube/controller.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Writer } from '../kube/writer.ts';
import { isCutOff } from '../placement/nodes/held-back.ts';
import type { LabelRules } from '../placement/nodes/label-rules.ts';
import { type Node, nodeArchitecture, taintKinds } from '../placement/nodes/node.ts';
import { runsOnlyBeforeTaint, waitsToBeReady } from '../placement/nodes/witness.ts';
import type { Settings } from '../placement/settings.ts';
import type { Watches } from './watches.ts';
import { createWrongNodes, type WrongNodeParts } from './wrong-nodes.ts';

/** The stores of the watches, and their listeners. */
type WatchedStores = Pick<Watches, 'listeners' | 'whole' | 'witnesses'> & {
  readonly [kind in 'pods' | 'nodes' | 'namespaces' | 'daemonSets']: Pick<Watches[kind], 'store'>;
};

export type LoopsOptions = {
  readonly watches: WatchedStores;
  /** Returns the present settings. After a change, call `settingsChanged`. */
  readonly settings: () => Settings;
  /** Returns the present label rules. After a change, call `labelRulesChanged`. */
  readonly labelRules: () => LabelRules;
  readonly loops: readonly string[];
  readonly workers: number;
  /** The longest bootstrap. Undefined for `plan`: existing nodes are tainted without waiting for pods. */
  readonly bootstrapMs: number | undefined;
  readonly images: ImageSource;
  readonly serviceAccountSecrets: (namespace: string, name: string, signal: AbortSignal) => Promise<readonly string[]>;
  readonly fetchNode: (name: string, signal: AbortSignal) => Promise<Node | undefined>;
  readonly write: Writer;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
  readonly onOutcome: (controller: string, key: string, seconds: number, result: Result | Failure) => void;
  readonly onPlaced?: (seconds: number) => void;
  /** Called with the number of images of a pod that was decided as an equal one was just before. */
  readonly onAlike?: (images: number) => void;
  readonly onBootstrapped?: (undecided: number) => void;
  /** Absent: taints that nobody manages are not watched. */
  readonly onUnmanagedTaints?: UnmanagedTaintsOptions['onChange'];
  /** Absent: the joining of pool nodes is not watched. */
  readonly onJoinedUntainted?: PoolNodesOptions['onJoinedUntainted'];
  /** Called when the API server refused a write of this controller. */
  readonly onRefused?: (controller: string) => void;
  /** Returns when a write last succeeded, in milliseconds on the monotonic clock. Absent: not known. */
  readonly lastWriteMs?: () => number | undefined;
  /** Absent: there is no wrong-node controller, and nothing is evicted. */
  readonly wrongNode?: WrongNodeParts;
};

/** The controllers of one term of leadership. They use watches that live longer than the term. */
export type Loops = {
  /** Works until `signal` aborts, then finishes the work under way. `kill` aborts that work too. */
  run(signal: AbortSignal, kill: AbortSignal): Promise<void>;
  /** Queues the objects that wait for an image, after its lookup has ended. */
  lookupEnded(canonical: string): void;
  /** Queues everything that may be decided differently after a change of the settings or of the registries. */
  settingsChanged(): void;
  /** Queues every node. */
  labelRulesChanged(): void;
  idle(): boolean;
  queueDepths(): Record<string, number>;
  readonly podStates: ReadonlyMap<string, PlacementState>;
  readonly daemonSetStates: ReadonlyMap<string, PlacementState>;
  /** Counts the objects whose changes another writer keeps undoing. */
  contested(): number;
  /** Counts the nodes that stay without the taint because a DaemonSet cannot tolerate it. */
  heldBack(): number;
  /** Counts the DaemonSets that did not come back after a write. */
  rolloutsStopped(): number;
  /** Counts the pods on wrong nodes. */
  onWrongNodes(): number;
};

/** Connects the controllers to the watches. Nothing runs before `run`. */
export function createLoops(options: LoopsOptions): Loops {
  const { watches, settings, clock, images, write, events, workers } = options;
  const [pods, nodes, daemonSets] = [watches.pods.store, watches.nodes.store, watches.daemonSets.store];
  const runs = (loop: string) => options.loops.includes(loop);
  const turns = createTurns(clock);
  /** The loops over many objects that go on in later turns. */
  let spreading = 0;

  /** Does `work` for every item: in this turn of the event loop as long as that is short, then in the next ones. */
  function forEach<T>(items: Iterable<T>, work: (item: T) => void): void {
    const rest = inTurns(turns, items, work);
    if (rest === undefined) return;
    spreading += 1;
    void rest.finally(() => {
      spreading -= 1;
    });
  }

  const { witnesses } = watches;
  let architectures = witnesses.architectures();
  let cancelWitness: (() => void) | undefined;
  const liveTaints = createTally(taintKinds);
  const architectureChanged = createArchitectureChanges(events, clock);
  const bootstrap = createBootstrap({
    timeoutMs: options.bootstrapMs ?? 0,
    clock,
    // If nodes were tainted before a DaemonSet's template tolerates the taint, its pods could not restart there.
    isInLine: (key) => daemonSet.holdsTaints(key),
    isStopped: () => daemonSet.stopsAll().length > 0,
    onOver(undecided) {
      options.onBootstrapped?.(undecided);
      enqueueNodes();
    },
  });

  const { lastWriteMs } = options;
  const common = { settings, images, write, events, clock, lastWriteMs, namespaces: watches.namespaces.store };
  const pod = createPodController({
    ...common,
    pods,
    clusterArchitectures: () => architectures,
    isPaced: options.bootstrapMs !== undefined,
    wholePod: watches.whole.pod,
    onTurn: (key) => podLoop.enqueue(key),
    onAlike: options.onAlike,
    onRefused: () => options.onRefused?.('pod'),
    onDecided(key) {
      bootstrap.decided('pod', key);
      wrongNodes?.podChanged(key);
    },
    ...(options.onPlaced ? { onPlaced: options.onPlaced } : {}),
  });
  const daemonSet = createDaemonSetController({
    ...common,
    daemonSets,
    clusterArchitectures: () => architectures,
    liveTaints: liveTaints.all,
    wholeDaemonSet: watches.whole.daemonSet,
    givesBack: options.bootstrapMs !== undefined,
    nodes: nodes.values,
    isPaced: options.bootstrapMs !== undefined,
    onTurn: (key) => daemonSetLoop.enqueue(key),
    onServed() {
      heldBack.recheck();
      if (daemonSet.stopsAll().length > 0) enqueueNodes();
    },
    serviceAccountSecrets: options.serviceAccountSecrets,
    onRefused: () => options.onRefused?.('daemonset'),
    onDecided(key) {
      bootstrap.decided('daemonset', key);
      if (!bootstrap.over()) heldBack.recheck();
      wrongNodes?.daemonSetDecided(key);
    },
  });
  /**
   * The nodes that existed when the term began. A taint on them could keep away pods that were not decided yet. Later nodes are
   * empty.
   */
  const existing = new Set<string>();
  const bootstrapped = (name: string) => {
    if (options.bootstrapMs === undefined) return true;
    const node = nodes.get(name);
    if (node !== undefined && waitsToBeReady(node, architectures, isNeeded)) return false;
    if (!bootstrap.over() && existing.has(name)) {
      // The bootstrap lasts as long as rollouts are stopped, and its nodes are reported like those that join.
      if (node !== undefined && daemonSet.stopsAll().length > 0) heldBack.allows(node);
      return false;
    }
    return node === undefined || heldBack.allows(node);
  };
  /** The nodes that stay without the taint because it would cut DaemonSets off from them. */
  const heldBack = createHeldBack({
    holders: daemonSet.holders,
    isCutOffSoon: (subject) =>
      daemonSet.awaitsProof(subject) ||
      [...bootstrap.undecidedDaemonSets()].some((key) => {
        const undecided = daemonSets.get(key);
        return undecided !== undefined && isCutOff(undecided, undefined, subject, settings().taints);
      }),
    taint: () => settings().taints.key,
    enqueue: (name) => nodeLoop.enqueue(name),
    nodes,
    events,
    clock,
  });
  /** Whether a DaemonSet that follows the cluster's architectures runs on a node that is not ready only before it has the taint. */
  function isNeeded(architecture: string): boolean {
    const { key, effect } = settings().taints;
    return [...daemonSet.states].some(([name, { decision }]) => {
      if (decision.kind !== 'place' || !decision.followsCluster) return false;
      const { template, isLarge } = daemonSets.get(name) ?? {};
      // The tolerations of a large one are not kept.
      return isLarge === true || runsOnlyBeforeTaint(template?.tolerations ?? [], { key, effect, value: architecture });
    });
  }
  // The settings of taints cannot change before a restart, so they are read once.
  const taints = runs('nodes') ? settings().taints : undefined;
  const node = createNodeController({
    nodes,
    rules: () => ({ taints, labels: runs('labels') ? options.labelRules() : undefined }),
    bootstrapped,
    onSettled: heldBack.forget,
    fetch: options.fetchNode,
    write,
    events,
    clock,
    lastWriteMs,
    onRefused: () => options.onRefused?.('node'),
  });

  const loop = (name: string, reconcile: Reconciler, urgent: (key: string) => boolean, most = workers): Controller =>
    createController({
      name,
      workers: most,
      reconcile,
      clock,
      turns,
      priorityOf: (key) => (urgent(key) ? 'urgent' : 'backlog'),
      onOutcome: (key, seconds, result) => options.onOutcome(name, key, seconds, result),
    });
  const podLoop = loop('pod', pod.reconcile, (key) => pods.get(key)?.nodeName === undefined);
  const daemonSetLoop = loop('daemonset', daemonSet.reconcile, () => true);
  const nodeLoop = loop('node', node.reconcile, () => true);
  const unmanaged =
    options.onUnmanagedTaints &&
    createUnmanagedTaints({
      ...common,
      nodes,
      managesNodes: runs('nodes'),
      onChange: options.onUnmanagedTaints,
    });
  const poolNodes =
    options.onJoinedUntainted &&
    createPoolNodes({ ...common, managesNodes: runs('nodes'), onJoinedUntainted: options.onJoinedUntainted });
  const wrongNodes =
    options.wrongNode &&
    createWrongNodes(
      {
        ...common,
        ...options.wrongNode,
        pods,
        nodes,
        clusterArchitectures: () => architectures,
        daemonSets,
        wholePod: watches.whole.pod,
      },
      (reconcile) => loop('wrong-node', reconcile, () => false, 1),
      forEach,
    );
  const controllers = [
    ...(runs('pods') ? [podLoop, ...(wrongNodes ? [wrongNodes.controller] : [])] : []),
    ...(runs('daemonsets') ? [daemonSetLoop] : []),
    ...(runs('nodes') || runs('labels') ? [nodeLoop] : []),
  ];

  function enqueueWorkloads(): void {
    // The images of the pods that have waited longest are looked up first.
    const gated = [...pods.values()].filter((pod) => pod.gated !== undefined);
    gated.sort((one, other) => one.createdAt - other.createdAt);
    forEach(gated, ({ namespace, name }) => podLoop.enqueue(`${namespace}/${name}`));
    forEach(pods.keys(), podLoop.enqueue);
    enqueueDaemonSets();
  }

  function enqueueDaemonSets(): void {
    forEach(daemonSets.keys(), daemonSetLoop.enqueue);
  }

  function enqueueNodes(): void {
    forEach(nodes.keys(), nodeLoop.enqueue);
  }

  /** Decides again what follows the cluster's architectures, if they have changed, and waits for the next change. */
  function checkArchitectures(): void {
    cancelWitness?.();
    const now = witnesses.architectures();
    const dueInMs = witnesses.dueInMs();
    cancelWitness = dueInMs === undefined ? undefined : clock.after(dueInMs, checkArchitectures);
    if (now === architectures) return;
    architectures = now;
    forEach(pod.followers(), (key) => {
      pod.invalidate(key);
      podLoop.enqueue(key);
    });
    enqueueDaemonSets();
  }

  function listen(): void {
    watches.listeners.pod = ({ key, now, before, isReset }) => {
      // The same generation may have another spec after a reset.
      if (isReset) pod.invalidate(key);
      // A held or waiting pod that is gone would otherwise keep its timer for minutes.
      if (now === undefined) podLoop.forget(key);
      if (now === undefined || !pod.isUpToDate(key, now)) podLoop.enqueue(key);
      if (now?.nodeName !== before?.nodeName || now?.broken !== before?.broken) wrongNodes?.podChanged(key);
    };
    watches.listeners.daemonSet = ({ key, now }) => {
      if (now === undefined) daemonSetLoop.forget(key);
      daemonSetLoop.enqueue(key);
      const next = daemonSet.nextToRoll();
      if (next !== undefined) daemonSetLoop.enqueue(next);
    };
    watches.listeners.node = ({ key, now, before }) => {
      if (now === undefined) nodeLoop.forget(key);
      nodeLoop.enqueue(key);
      unmanaged?.changed();
      poolNodes?.changed({ now, before });
      architectureChanged({ now, before });
      const appeared = liveTaints.count(now, 1);
      const went = liveTaints.count(before, -1);
      checkArchitectures();
      const isOther = (now && architectureOf(now)) !== (before && architectureOf(before));
      if (isOther || now?.managed !== before?.managed) wrongNodes?.nodeChanged(key, isOther);
      if (appeared || went) enqueueDaemonSets();
    };
    watches.listeners.namespace = (change) => {
      if (!changesPlacement(change)) return;
      const prefix = `${change.key}/`;
      forEach(pods.keys(), (key) => {
        if (!key.startsWith(prefix)) return;
        pod.invalidate(key);
        podLoop.enqueue(key);
      });
      forEach(daemonSets.keys(), (key) => {
        if (key.startsWith(prefix)) daemonSetLoop.enqueue(key);
      });
    };
  }

  return {
    podStates: pod.states,
    daemonSetStates: daemonSet.states,
    lookupEnded(canonical) {
      forEach(pod.lookupEnded(canonical), ({ key, inMs }) => podLoop.enqueueAfter(key, inMs));
      forEach(daemonSet.lookupEnded(canonical), ({ key, inMs }) => daemonSetLoop.enqueueAfter(key, inMs));
      wrongNodes?.lookupEnded(canonical);
    },
    settingsChanged() {
      enqueueWorkloads();
      wrongNodes?.settingsChanged();
    },
    labelRulesChanged: enqueueNodes,
    onWrongNodes: () => wrongNodes?.count() ?? 0,
    contested: () => pod.contested() + daemonSet.contested() + node.contested(),
    heldBack: heldBack.count,
    rolloutsStopped: daemonSet.stopped,
    idle: () => spreading === 0 && controllers.every((controller) => controller.idle()),
    queueDepths: () => Object.fromEntries(controllers.map(({ name, depth }) => [name, depth()])),
    async run(signal, kill) {
      listen();
      wrongNodes?.begin();
      for (const subject of nodes.values()) liveTaints.count(subject, 1);
      checkArchitectures();
      for (const name of nodes.keys()) existing.add(name);
      enqueueWorkloads();
      enqueueNodes();
      unmanaged?.look();
      poolNodes?.begin(nodes.values());
      bootstrap.begin(
        { pod: runs('pods') ? pods.keys() : [], daemonset: runs('daemonsets') ? daemonSets.keys() : [] },
        signal,
      );
      // Without any controller, the term only waits for its end.
      await Promise.all([until(signal), ...controllers.map((controller) => controller.run(signal, kill))]);
      cancelWitness?.();
      heldBack.end();
      unmanaged?.end();
      poolNodes?.end();
      for (const kind of ['pod', 'node', 'namespace', 'daemonSet'] as const) watches.listeners[kind] = undefined;
      pod.end();
      daemonSet.end();
      wrongNodes?.end();
    },
  };
}

function architectureOf(node: Node): string | undefined {
  return node.deleting ? undefined : nodeArchitecture(node);
}

/** Resolves when the signal aborts. */
export function until(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
