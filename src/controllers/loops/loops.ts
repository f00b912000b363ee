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
import { createArrivals, createCluster, type WatchedStores } from './arrivals.ts';
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
  const { watches, settings, clock, evictor, telemetry } = options;
  const [pods, nodes, daemonSets] = [watches.pods.store, watches.nodes.store, watches.daemonSets.store];
  const runs = (loop: string) => options.loops.includes(loop);
  const lasts = options.bootstrapMs !== undefined;
  const cluster = createCluster(watches.witnesses, clock, () => arrivals.architecturesChanged());
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
    enqueue: (name) => (name === undefined ? arrivals.nodes() : queues.node.enqueue(name)),
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
  const { add, forEach, idle } = created;
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
  const arrivals = createArrivals({
    ...{ watches, pod, daemonSet, queues, forEach, cluster, wrongNodes },
    onNode: lasts ? poolNodes.changed : undefined,
  });
  const controllers = [
    ...(runs('pods') ? [queues.pod, ...(wrongNodes ? [wrongNodes.controller] : [])] : []),
    ...(runs('daemonsets') ? [queues.daemonSet] : []),
    ...(runs('nodes') || runs('labels') ? [queues.node] : []),
  ];

  return {
    podStates: pod.states,
    daemonSetStates: daemonSet.states,
    lookupEnded: arrivals.lookupEnded,
    settingsChanged: arrivals.settingsChanged,
    labelRulesChanged: arrivals.nodes,
    onWrongNodes: (): number => wrongNodes?.count() ?? 0,
    /** Counts the objects whose changes another writer keeps undoing. */
    contested: (): number => pod.contested() + daemonSet.contested() + node.contested(),
    heldBack: taintable.count,
    rolloutsStopped: (): number => daemonSet.stopped().length,
    /** Whether what an Event of these controllers said about an object is still so. */
    isStill(
      reason: 'WriteContested' | 'WriteRefused' | 'TaintHeldBack' | 'RolloutStopped' | 'WrongNode',
      { kind, namespace, name, uid }: Regarding,
    ): boolean {
      const key = namespace === undefined ? name : `${namespace}/${name}`;
      if (reason === 'RolloutStopped') return daemonSet.stopped().includes(key);
      if (reason === 'WrongNode') return wrongNodes?.isFound(key, uid) === true;
      if (reason === 'TaintHeldBack') return taintable.concerns(key);
      const states = kind === 'Pod' ? pod.states : kind === 'Node' ? node.states : daemonSet.states;
      const { contested, refused } = states.get(key)?.notes ?? {};
      if (reason === 'WriteRefused') return refused !== undefined;
      return contested !== undefined && contested.blockedUntil > clock.monotonic();
    },
    idle: (): boolean => idle() && controllers.every((controller) => controller.idle()),
    queueDepths: (): Record<string, number> =>
      Object.fromEntries(controllers.map(({ name, depth }) => [name, depth()])),
    /** Works until `signal` aborts, then finishes the work under way. `kill` aborts that work too. */
    async run(signal: AbortSignal, kill: AbortSignal): Promise<void> {
      wrongNodes?.begin();
      cluster.begin(nodes.values());
      arrivals.begin();
      if (lasts) poolNodes.begin(nodes.values());
      const waitedFor = {
        pod: runs('pods') ? pods.keys() : [],
        daemonset: runs('daemonsets') ? daemonSets.keys() : [],
      };
      taintable.begin(waitedFor, signal);
      // Without any controller, the term only waits for its end.
      await Promise.all([until(signal), ...controllers.map((controller) => controller.run(signal, kill))]);
      arrivals.end();
      for (const each of [cluster, taintable, poolNodes, pod]) each.end();
    },
  };
}
