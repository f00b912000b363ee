import type { PlacementState } from '../../controllers/placement-state.ts';
import { createTurns, inTurns } from '../../kit/fairness/turns.ts';
import { isArchitecture } from '../../kit/platform.ts';
import type { Observed } from '../../observability/metrics.ts';
import type { Resolver } from '../../oci/resolver.ts';
import { carriesOurTaint } from '../../placement/nodes/managed.ts';
import { type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import { unmanagedTaints } from '../../placement/nodes/unmanaged-taints.ts';
import type { Settings } from '../../placement/settings.ts';
import type { Loops } from '../controllers.ts';
import type { Watches } from '../watches.ts';

/** The outcome under which `archaware_pods` counts a pod. */
type PodOutcome = 'placed' | 'waiting' | 'held' | 'open' | 'ignored';

/** Makes the gauges read the state of the running process whenever metrics are requested. No counters are kept for them. */
export function observeState(parts: {
  readonly watches: Watches;
  readonly resolver: Resolver;
  readonly loops: () => Loops | undefined;
  readonly leader: () => boolean;
  /** Returns when the serving certificate expires, in milliseconds since the epoch. */
  readonly certificateExpiry: () => number | undefined;
  readonly now: () => number;
  readonly settings: () => Pick<Settings, 'mode' | 'taints'>;
  /** Whether the node controller runs. */
  readonly managesNodes: boolean;
  /** Counts the gated pods that were found without a watch on pods. */
  readonly gatedElsewhere: () => number;
  readonly keepsDaemonSets: () => boolean | undefined;
}): Observed {
  const { watches, resolver, loops, leader, now, certificateExpiry } = parts;
  // Anybody who reaches the port may ask for the metrics, and a big cluster has 100,000 pods.
  const turns = createTurns({ monotonic: now });
  return {
    leader,
    queueDepths: () => loops()?.queueDepths() ?? {},
    async gatedPods() {
      let count = parts.gatedElsewhere();
      await inTurns(turns, watches.pods.store.values(), ({ gated }) => {
        if (gated !== undefined) count++;
      });
      return count;
    },
    certificateExpirySeconds() {
      const expiry = certificateExpiry();
      return expiry === undefined ? undefined : (expiry - now()) / 1000;
    },
    unresolvableImages: () => resolver.failing(),
    nodes: () => countByArchitecture(watches.nodes.store.values(), () => true),
    taintedNodes: () => countByArchitecture(watches.nodes.store.values(), carriesOurTaint),
    unmanagedTaints() {
      let count = 0;
      for (const node of watches.nodes.store.values()) {
        count += unmanagedTaints(node, parts.settings(), parts.managesNodes).length;
      }
      return count;
    },
    safetyNets: () => ({ daemonsets: parts.keepsDaemonSets() }),
    contestedObjects: () => loops()?.contested() ?? 0,
    taintsHeldBack: () => loops()?.heldBack() ?? 0,
    rolloutStopped: () => loops()?.rolloutsStopped() ?? 0,
    wrongNodePods: () => loops()?.onWrongNodes() ?? 0,
    async pods() {
      const counts: Record<PodOutcome, number> = { placed: 0, waiting: 0, held: 0, open: 0, ignored: 0 };
      await inTurns(turns, loops()?.podStates.values() ?? [], (state) => counts[outcomeOf(state)]++);
      return counts;
    },
    async oldestWaitingPodSeconds() {
      let oldest = Number.POSITIVE_INFINITY;
      await inTurns(turns, loops()?.podStates ?? [], ([key, { decision }]) => {
        const pod = decision.kind === 'wait' ? watches.pods.store.get(key) : undefined;
        if (pod !== undefined && pod.nodeName === undefined) oldest = Math.min(oldest, pod.createdAt);
      });
      return Number.isFinite(oldest) ? Math.max(0, (now() - oldest) / 1000) : 0;
    },
  };
}

/** Counts the nodes for which `counts` is true, by the value of the label `architecture`. */
export function countByArchitecture(nodes: Iterable<Node>, counts: (node: Node) => boolean): Record<string, number> {
  const found: Record<string, number> = {};
  for (const node of nodes) {
    if (!counts(node)) continue;
    const architecture = labelOf(nodeArchitecture(node));
    found[architecture] = (found[architecture] ?? 0) + 1;
  }
  return found;
}

/** Returns the value of the label: a kubelet may report what it likes, and each value is a series. */
function labelOf(architecture: string | undefined): string {
  if (architecture === undefined) return 'unknown';
  return isArchitecture(architecture) ? architecture : 'other';
}

function outcomeOf({ decision }: PlacementState): PodOutcome {
  switch (decision.kind) {
    case 'wait':
      return 'waiting';
    case 'hold':
      return 'held';
    case 'skip':
      return 'ignored';
    case 'place':
      return decision.unknown.length > 0 || decision.basis === 'released' ? 'open' : 'placed';
    default:
      return decision satisfies never;
  }
}
