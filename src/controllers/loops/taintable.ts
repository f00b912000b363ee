import type { Clock } from '../../kit/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Store } from '../../kube/watch/collection.ts';
import { isCutOff } from '../../placement/nodes/cut-off.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { runsOnlyBeforeTaint, waitsToBeReady } from '../../placement/nodes/witness.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import type { Settings } from '../../placement/settings.ts';
import type { DaemonSetController } from '../daemonset/controller.ts';
import { createHeldBack } from '../node/held-back.ts';
import { createBootstrap } from './bootstrap.ts';

/** Which nodes may get archaware's taint now, so that it keeps away nothing that was not decided yet. */
export function createTaintable(options: {
  /** The longest bootstrap. Undefined: every node may be tainted at once. */
  readonly bootstrapMs: number | undefined;
  readonly nodes: Store<Node>;
  readonly daemonSets: Store<DaemonSet>;
  readonly daemonSet: DaemonSetController;
  readonly settings: () => Pick<Settings, 'taints'>;
  readonly clusterArchitectures: () => readonly string[];
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
  /** Has a node decided again; without a name: all of them. */
  readonly enqueue: (name?: string) => void;
  readonly onBootstrapped: (undecided: number) => void;
}) {
  const { bootstrapMs, nodes, daemonSets, daemonSet, settings, clusterArchitectures, enqueue } = options;
  const bootstrap = createBootstrap({
    timeoutMs: bootstrapMs ?? 0,
    clock: options.clock,
    // If nodes were tainted before a DaemonSet's template tolerates the taint, its pods could not restart there.
    isInLine: daemonSet.holdsTaints,
    isStopped: isStopping,
    onOver(undecided) {
      options.onBootstrapped(undecided);
      enqueue();
    },
  });
  /** The nodes that stay without the taint because it would cut DaemonSets off from them. */
  const heldBack = createHeldBack({
    ...options,
    holders: daemonSet.holders,
    isCutOffSoon: (node) =>
      daemonSet.awaitsProof(node) ||
      [...bootstrap.undecidedDaemonSets()].some((key) => {
        const undecided = daemonSets.get(key);
        return undecided !== undefined && isCutOff(undecided, undefined, node, settings().taints);
      }),
    taint: () => settings().taints.key,
  });
  /** The nodes that existed when the term began. A taint on them could keep away pods that were not decided yet. Later nodes are empty. */
  const existing = new Set<string>();

  function isStopping(): boolean {
    return daemonSet.stopsAll().length > 0;
  }

  /** Whether a DaemonSet that follows the cluster's architectures runs on a node that is not ready only before it has the taint. */
  function isNeeded(architecture: string): boolean {
    const { key, effect } = settings().taints;
    return [...daemonSet.states].some(([name, { decision }]) => {
      if (decision?.kind !== 'place' || !decision.followsCluster) return false;
      const tolerations = daemonSets.get(name)?.template.tolerations ?? [];
      return runsOnlyBeforeTaint(tolerations, { key, effect, value: architecture });
    });
  }

  return {
    allows(name: string): boolean {
      if (bootstrapMs === undefined) return true;
      const node = nodes.get(name);
      if (node !== undefined && waitsToBeReady(node, clusterArchitectures(), isNeeded)) return false;
      if (!bootstrap.over() && existing.has(name)) {
        // The bootstrap lasts as long as rollouts are stopped, and its nodes are reported like those that join.
        if (node !== undefined && isStopping()) heldBack.allows(node);
        return false;
      }
      return node === undefined || heldBack.allows(node);
    },
    /** Starts the bootstrap with the nodes that are there, and the keys of the objects to wait for. */
    begin(keys: { readonly pod: Iterable<string>; readonly daemonset: Iterable<string> }, signal: AbortSignal): void {
      for (const name of nodes.keys()) existing.add(name);
      bootstrap.begin(keys, signal);
    },
    podDecided: (key: string): void => bootstrap.decided('pod', key),
    daemonSetDecided(key: string): void {
      bootstrap.decided('daemonset', key);
      if (!bootstrap.over()) heldBack.recheck();
    },
    /** A DaemonSet that lacked tolerations has them, or rollouts are stopped or go on. */
    served(): void {
      heldBack.recheck();
      if (isStopping()) enqueue();
    },
    count: heldBack.count,
    concerns: heldBack.concerns,
    forget: heldBack.forget,
    end: heldBack.end,
  };
}
