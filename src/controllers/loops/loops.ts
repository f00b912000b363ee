import { until } from '../../kit/abort.ts';
import { createQueues } from '../../kube/control-loop.ts';
import type { Regarding } from '../../kube/events.ts';
import type { Evictor } from '../../kube/writer.ts';
import type { LabelRules } from '../../placement/nodes/label-rules.ts';
import type { PlacingOptions, Telemetry, WritingOptions } from '../controller-options.ts';
import { createDaemonSetController } from '../daemonset/controller.ts';
import type { DaemonSetControllerOptions } from '../daemonset/template.ts';
import { createNodeController } from '../node/controller.ts';
import { createPoolNodes } from '../node/pool-nodes.ts';
import { createPodController } from '../pod/controller.ts';
import { createWrongNodes, type WrongNodes } from '../wrong-node/controller.ts';
import {
  type Arrivals,
  architecturesChanged,
  createCluster,
  listen,
  lookupEnded,
  queueNodes,
  settingsChanged,
  stopListening,
  type WatchedStores,
} from './arrivals.ts';
import { createTaintable } from './taintable.ts';

type LoopsOptions = Omit<WritingOptions, 'onRefused'> &
  Pick<PlacingOptions, 'settings' | 'images'> &
  Pick<DaemonSetControllerOptions, 'serviceAccountSecrets'> & {
    readonly watches: WatchedStores;
    /** Returns the present label rules. After a change, call `labelRulesChanged`. */
    readonly labelRules: () => LabelRules;
    readonly loops: readonly string[];
    readonly workers: number;
    /** The longest bootstrap. Undefined for `plan`: nothing is paced, and nodes are tainted without waiting for pods. */
    readonly bootstrapMs: number | undefined;
    readonly telemetry: Partial<Telemetry>;
    readonly onBootstrapped?: (undecided: number) => void;
    /** Absent: there is no wrong-node controller, and nothing is evicted. */
    readonly evictor?: Evictor;
  };

/** The controllers of one term of leadership. They use watches that live longer than the term. */
export type Loops = ReturnType<typeof createLoops>;

/** Connects the controllers to the watches. Nothing runs before `run`. */
export function createLoops(options: LoopsOptions) {
  const parts = connect(options);
  const { pod, daemonSet, node, taintable, wrongNodes, arrivals, controllers } = parts;
  return {
    podStates: pod.states,
    daemonSetStates: daemonSet.states,
    lookupEnded: (canonical: string): void => lookupEnded(arrivals, canonical),
    settingsChanged: (): void => settingsChanged(arrivals),
    labelRulesChanged: (): void => queueNodes(arrivals),
    onWrongNodes: (): number => wrongNodes?.count() ?? 0,
    /** Counts the objects whose changes another writer keeps undoing. */
    contested: (): number => pod.contested() + daemonSet.contested() + node.contested(),
    heldBack: taintable.count,
    rolloutsStopped: (): number => daemonSet.stopped().length,
    /** Whether what an Event of these controllers said about an object is still so. */
    isStill: (reason: ConcernReason, regarding: Regarding): boolean => isStill(parts, reason, regarding),
    idle: parts.idle,
    queueDepths: (): Record<string, number> =>
      Object.fromEntries(controllers.map(({ name, depth }) => [name, depth()])),
    /** Works until `signal` aborts, then finishes the work under way. `kill` aborts that work too. */
    run: (signal: AbortSignal, kill: AbortSignal): Promise<void> => run(parts, signal, kill),
  };
}

/** The parts of a term. Each tells the others what they have to know. */
type LoopParts = ReturnType<typeof connect>;

/** Creates the parts of a term, and connects them to each other and to the watches. */
function connect(options: LoopsOptions) {
  const { watches, settings, evictor, telemetry } = options;
  const [pods, nodes, daemonSets] = [watches.pods.store, watches.nodes.store, watches.daemonSets.store];
  const runs = (loop: string) => options.loops.includes(loop);
  const lasts = options.bootstrapMs !== undefined;
  const cluster = createCluster(watches.witnesses, options.clock, () => architecturesChanged(arrivals));
  const common = {
    ...options,
    ...{ pods, nodes, daemonSets, namespaces: watches.namespaces.store },
    fetchDaemonSet: watches.fetchDaemonSet,
    clusterArchitectures: cluster.architectures,
    managesNodes: runs('nodes'),
    isPaced: lasts,
  };

  const pod = createPodController({
    ...common,
    onTurn: (key) => queues.pod.enqueue(key),
    onPlaced: (seconds) => telemetry.placed?.(seconds),
    onRefused: () => telemetry.refused?.('pod'),
    onDecided(key) {
      taintable.podDecided(key);
      wrongNodes?.podChanged(key);
    },
  });
  const daemonSet = createDaemonSetController({
    ...common,
    liveTaints: cluster.taints,
    givesBack: lasts,
    nodes: nodes.values,
    onTurn: (key) => queues.daemonSet.enqueue(key),
    onServed: () => taintable.served(),
    onRefused: () => telemetry.refused?.('daemonset'),
    onDecided(key) {
      taintable.daemonSetDecided(key);
      wrongNodes?.daemonSetDecided(key);
    },
  });
  const taintable = createTaintable({
    ...common,
    daemonSet,
    enqueue: (name) => (name === undefined ? queueNodes(arrivals) : queues.node.enqueue(name)),
    onBootstrapped: (undecided) => options.onBootstrapped?.(undecided),
  });
  // The settings of taints cannot change before a restart, so they are read once.
  const taints = runs('nodes') ? settings().taints : undefined;
  const node = createNodeController({
    ...common,
    rules: () => ({ taints, labels: runs('labels') ? options.labelRules() : undefined }),
    bootstrapped: taintable.allows,
    onSettled: taintable.forget,
    fetch: watches.fetchNode,
    onRefused: () => telemetry.refused?.('node'),
  });

  const created = createQueues({ ...options, onOutcome: (...ended) => telemetry.outcome?.(...ended) });
  const { add, forEach } = created;
  const queues = {
    pod: add('pod', pod.reconcile, (key) => pods.get(key)?.nodeName === undefined),
    daemonSet: add('daemonset', daemonSet.reconcile, () => true),
    node: add('node', node.reconcile, () => true),
  };
  const wrongNodes: WrongNodes | undefined =
    evictor &&
    createWrongNodes(
      { ...common, evictor, onWrongNode: (reason, action) => telemetry.wrongNode?.(reason, action) },
      created,
    );
  // This watcher only reports, and `plan` reports nothing.
  const poolNodes = createPoolNodes({ ...common, onJoinedUntainted: (pool) => telemetry.joinedUntainted?.(pool) });
  const onNode = lasts ? poolNodes.changed : undefined;
  const arrivals: Arrivals = { watches, pod, daemonSet, queues, forEach, cluster, wrongNodes, onNode };
  const controllers = [
    ...(runs('pods') ? [queues.pod, ...(wrongNodes ? [wrongNodes.controller] : [])] : []),
    ...(runs('daemonsets') ? [queues.daemonSet] : []),
    ...(runs('nodes') || runs('labels') ? [queues.node] : []),
  ];
  const idle = () => created.idle() && controllers.every((controller) => controller.idle());
  return { options, cluster, pod, daemonSet, node, taintable, wrongNodes, poolNodes, arrivals, controllers, idle };
}

/** The reasons of Events that say how things are, until they change. */
type ConcernReason = 'WriteContested' | 'WriteRefused' | 'TaintHeldBack' | 'RolloutStopped' | 'WrongNode';

function isStill(parts: LoopParts, reason: ConcernReason, { kind, namespace, name, uid }: Regarding): boolean {
  const { pod, daemonSet, node, taintable, wrongNodes } = parts;
  const key = namespace === undefined ? name : `${namespace}/${name}`;
  if (reason === 'RolloutStopped') return daemonSet.stopped().includes(key);
  if (reason === 'WrongNode') return wrongNodes?.isFound(key, uid) === true;
  if (reason === 'TaintHeldBack') return taintable.concerns(key);
  const states = kind === 'Pod' ? pod.states : kind === 'Node' ? node.states : daemonSet.states;
  const { contested, refused } = states.get(key)?.notes ?? {};
  if (reason === 'WriteRefused') return refused !== undefined;
  return contested !== undefined && contested.blockedUntil > parts.options.clock.monotonic();
}

async function run(parts: LoopParts, signal: AbortSignal, kill: AbortSignal): Promise<void> {
  const { cluster, taintable, poolNodes, arrivals, controllers } = parts;
  const { watches, loops, bootstrapMs } = parts.options;
  const nodes = watches.nodes.store;
  parts.wrongNodes?.begin();
  cluster.begin(nodes.values());
  listen(arrivals);
  if (bootstrapMs !== undefined) poolNodes.begin(nodes.values());
  const waitedFor = {
    pod: loops.includes('pods') ? watches.pods.store.keys() : [],
    daemonset: loops.includes('daemonsets') ? watches.daemonSets.store.keys() : [],
  };
  taintable.begin(waitedFor, signal);
  // Without any controller, the term only waits for its end.
  await Promise.all([until(signal), ...controllers.map((controller) => controller.run(signal, kill))]);
  stopListening(arrivals);
  for (const each of [cluster, taintable, poolNodes, parts.pod]) each.end();
}
