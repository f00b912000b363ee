import { withoutOurs } from '../asked.ts';
import type { Decision } from '../decide.ts';
import { isLeftAlone, type SkipReason } from '../eligibility.ts';
import type { Explanation } from '../explain/explanation.ts';
import type { ExplainInput } from '../explain/input.ts';
import type { Demands } from '../fit.ts';
import type { Settings } from '../settings.ts';
import { findingForPending, findingOf, type SpreadFinding } from './finding.ts';
import { createSpreadLimits } from './limit.ts';
import { lastingNodes } from './nodes.ts';
import { spreadPod } from './pod.ts';

/**
 * Returns what a topology spread constraint keeps off: the pod itself if it waits and the scheduler says so, or some of the pods that
 * an object wants. `authored`: the demands without what archaware adds; `placed`: those of a pod that waits, with it.
 */
export function spreadFindingFor(
  { workload, applied, nodes }: ExplainInput,
  outcome: Decision | SkipReason,
  { authored, placed }: { readonly authored: Demands; readonly placed: Demands },
  settings: Settings,
): SpreadFinding | undefined {
  const { kind, pod, spread: constraints, template, replicas = 0, rollsAhead, scheduler } = workload;
  const decision = typeof outcome === 'string' ? undefined : outcome;
  const isAlone = typeof outcome === 'string' && isLeftAlone(outcome);
  // A pod of a DaemonSet names its node, so no other node counts.
  const isDaemon = kind === 'DaemonSet' || pod?.owner?.kind === 'DaemonSet';
  if (constraints.length === 0 || isDaemon || !(decision?.kind === 'place' || isAlone)) return undefined;
  const placement = decision?.kind === 'place' ? decision : undefined;
  const own = pod?.written?.architectures === undefined ? authored : withoutOurs(authored);
  const spread = spreadPod({ template, demands: own, constraints }, placement, settings);
  if (!applied) {
    if (pod !== undefined) return undefined;
    const limitOf = createSpreadLimits(lastingNodes(nodes, settings), settings.taints);
    return findingOf(
      limitOf(spread, () => []),
      { pods: replicas, rollsAhead },
    );
  }
  if (pod?.nodeName !== undefined) return undefined;
  const limitOf = createSpreadLimits(nodes, settings.taints);
  return findingForPending(
    limitOf({ ...spread, demands: placed }, () => []),
    scheduler,
  );
}

/** Returns a finding as the output of `explain` shows it. */
export function explainSpread(finding: SpreadFinding | undefined): Pick<Explanation, 'spread'> {
  if (finding === undefined) return {};
  const { limit, text } = finding;
  const { constraint, empty, most } = limit;
  return { spread: { topologyKey: constraint.topologyKey, empty: empty.map(({ name }) => name), most, text } };
}
