import type { ObjectRecord } from '../../controllers/memory.ts';
import { createReadiness, labelOf } from '../../controllers/readiness.ts';
import type { Watches } from '../../controllers/watches.ts';
import { createTurns, inTurns } from '../../kit/fairness/event-loop.ts';
import { cannotListen } from '../../kit/network/listen.ts';
import { brokenWatches } from '../../kube/watch/watch-health.ts';
import { serveHealth } from '../../observability/health.ts';
import type { Observed } from '../../observability/metrics.ts';
import { isOpen } from '../../placement/decide.ts';
import { skipFacts } from '../../placement/eligibility.ts';
import { carriesOurTaint, nodesWithUnmanagedTaints } from '../../placement/nodes/managed.ts';
import { type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import { onlyObserves } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import type { Base } from './base.ts';
import type { Parts } from './parts.ts';

/** The outcome under which `archaware_pods` counts a pod. */
export type PodOutcome = 'placed' | 'waiting' | 'held' | 'open' | 'ignored';

/** Serves /metrics, /healthz and /readyz, if `metrics.address` names a port. Throws if it cannot listen. */
export async function serveState(base: Base, parts: Parts): Promise<void> {
  const { config, metrics, log, end } = base;
  const { address } = config.metrics;
  if (address === '') return;
  const observed = observeState(base, parts);
  try {
    const { port } = await serveHealth(
      { address, metrics: () => metrics.render(observed), notReady: () => notReady(base, parts) },
      end,
    );
    log.info({ port }, 'serving /metrics, /healthz and /readyz');
    log.flush();
  } catch (error) {
    throw cannotListen('metrics.address', address, error);
  }
}

/** Returns the names that /readyz prints; empty if the replica is ready. */
function notReady({ signal, answers }: Base, { running, watches, admission, terms }: Parts): string[] {
  return [
    // Not ready from SIGTERM on, so that the Service drops the replica's address while it still answers.
    ...(signal.aborted ? ['ending'] : []),
    ...watches.notSynced(),
    ...leftovers(watches, running.settings(), terms.gatedElsewhere()),
    ...(admission?.notReady() ?? []),
    // A replica gates no pod before it has seen a leader, so pods with unknown images would pass without a gate.
    ...(admission && !running.hasSeenLeader() ? ['leader'] : []),
    // A replica that answers reviews stays ready with a broken watch: it answers with its last knowledge.
    ...(admission ? [] : brokenWatches(watches.health(), answers.period())),
  ];
}

/**
 * Returns what an earlier mode left in a cluster that this process only observes: taints, which nobody removes, and gates, which
 * nobody releases. Empty in every other mode. A replica with such leftovers is not ready, so that a rollout to this mode stops.
 */
export function leftovers(
  { nodes, pods }: Pick<Watches, 'nodes' | 'pods'>,
  settings: Settings,
  gatedElsewhere: number,
): string[] {
  if (!onlyObserves(settings)) return [];
  const tainted = nodesWithUnmanagedTaints(nodes.store.values(), settings, false).length;
  let gated = gatedElsewhere;
  for (const pod of pods.store.values()) if (pod.gated !== undefined) gated++;
  return [
    ...(tainted > 0 ? [`taints of archaware on ${tainted} node(s): run archaware clean`] : []),
    ...(gated > 0 ? [`the gate of archaware on ${gated} pod(s): run archaware clean`] : []),
  ];
}

/** Makes the gauges read the state of the running process whenever metrics are requested. No counters are kept for them. */
function observeState(base: Base, { watches, running, terms, admission }: Parts): Observed {
  const now = base.clock.wall;
  const { loops } = running;
  // Anybody who reaches the port may ask for the metrics, and a big cluster has 100,000 pods.
  const turns = createTurns({ monotonic: now });
  const readiness = createReadiness({
    ...{ pods: watches.pods.store, nodes: watches.nodes.store, namespaces: watches.namespaces.store },
    daemonSets: watches.daemonSets.store,
    ...{ settings: running.settings, images: running.images, clock: base.clock },
    targets: base.config.report.targets,
  });
  return {
    leader: () => loops() !== undefined && running.mayWrite(),
    queueDepths: () => loops()?.queueDepths() ?? {},
    async gatedPods() {
      let count = terms.gatedElsewhere();
      await inTurns(turns, watches.pods.store.values(), ({ gated }) => {
        if (gated !== undefined) count++;
      });
      return count;
    },
    certificateExpirySeconds() {
      const expiry = admission?.expiry();
      return expiry === undefined ? undefined : (expiry - now()) / 1000;
    },
    unresolvableImages: () => running.resolver.failing(),
    nodes: () => countByArchitecture(watches.nodes.store.values(), () => true),
    taintedNodes: () => countByArchitecture(watches.nodes.store.values(), carriesOurTaint),
    publishedImages: () => (loops() === undefined ? 0 : (terms.published()?.images ?? 0)),
    safetyNets: () => ({ daemonsets: terms.keepsDaemonSets() }),
    contestedObjects: () => loops()?.contested() ?? 0,
    taintsHeldBack: () => loops()?.heldBack() ?? 0,
    rolloutStopped: () => loops()?.rolloutsStopped() ?? 0,
    wrongNodePods: () => loops()?.onWrongNodes() ?? 0,
    readiness: async () => (loops() === undefined ? { pods: [], images: [] } : readiness(turns)),
    async pods() {
      const counts: Record<PodOutcome, number> = { placed: 0, waiting: 0, held: 0, open: 0, ignored: 0 };
      await inTurns(turns, loops()?.podStates.values() ?? [], ({ decision }) => {
        const outcome = decision && outcomeOf(decision);
        if (outcome !== undefined) counts[outcome]++;
      });
      return counts;
    },
    async oldestWaitingPodSeconds() {
      let oldest = Number.POSITIVE_INFINITY;
      await inTurns(turns, loops()?.podStates ?? [], ([key, { decision }]) => {
        const pod = decision?.kind === 'wait' ? watches.pods.store.get(key) : undefined;
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

/** Returns how a pod is counted; undefined for one that needs nothing: it has finished, or its DaemonSet is decided. */
export function outcomeOf(decision: NonNullable<ObjectRecord['decision']>): PodOutcome | undefined {
  switch (decision.kind) {
    case 'wait':
      return 'waiting';
    case 'hold':
      return 'held';
    case 'skip':
      return skipFacts(decision.reason).isLeftAlone ? 'ignored' : undefined;
    case 'place':
      return isOpen(decision) ? 'open' : 'placed';
    default:
      return decision satisfies never;
  }
}
