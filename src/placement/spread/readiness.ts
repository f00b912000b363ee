import type { Placement } from '../decide.ts';
import { type Node, nodeArchitecture } from '../nodes/node.ts';
import type { Assessment } from '../readiness/assess.ts';
import type { Candidate } from '../readiness/candidate.ts';
import type { Reason } from '../readiness/report.ts';
import type { Settings } from '../settings.ts';
import { findingOf } from './finding.ts';
import { createSpreadLimits, type SpreadPod } from './limit.ts';
import { lastingNodes, standInsFor } from './nodes.ts';
import { spreadPod } from './pod.ts';
import { conditionText, cureText } from './text.ts';

/** Returns what nodes of a target do to the pods of a candidate that cannot run there; empty if nothing. */
export type SpreadReasonsOf = (candidate: Candidate, assessment: Assessment, target: string) => readonly Reason[];

/**
 * Creates the function that says which workloads lose pods to their own topology spread where there are nodes of a target. If the
 * cluster has some, it counts them; else it says what they would do.
 */
export function createSpreadReasons(nodes: readonly Node[], settings: Settings): SpreadReasonsOf {
  const lasting = lastingNodes(nodes, settings);
  const limitOf = createSpreadLimits(lasting, settings.taints);
  const there = new Map(lasting.map((node) => [node.name, nodeArchitecture(node)]));
  const targets = new Set(there.values());

  return (candidate, assessment, target) => {
    const pod = podOf(candidate, assessment, target);
    if (pod === undefined) return [];
    if (!targets.has(target)) {
      const text = spreadWithoutNodes(candidate, assessment, [target]);
      return text === undefined ? [] : [{ kind: 'spread', text }];
    }
    const { replicas: pods, rollsAhead } = candidate;
    const finding = findingOf(
      limitOf(pod, () => []),
      { pods, rollsAhead },
    );
    const isOfTarget = finding?.limit.empty.some((domain) => domain.nodes.some((name) => there.get(name) === target));
    return finding === undefined || !isOfTarget ? [] : [{ kind: 'spread', text: `${finding.text}; ${finding.cure}` }];
  };
}

/**
 * Returns what nodes of these architectures would do to a candidate that cannot run there, and what helps; undefined if nothing. Which
 * nodes there are is not known.
 */
export function spreadWithoutNodes(
  candidate: Candidate,
  assessment: Assessment,
  elsewhere: readonly string[],
): string | undefined {
  const affected = elsewhere.filter((target) => podOf(candidate, assessment, target) !== undefined);
  const [target] = affected;
  const pod = target === undefined ? undefined : podOf(candidate, assessment, target);
  if (target === undefined || pod === undefined || assessment.outcome.kind !== 'place') return undefined;
  const { settings, outcome } = assessment;
  const nodes = lastingNodes(standInsFor([...outcome.architectures, ...affected], pod), settings);
  const limit = createSpreadLimits(nodes, settings.taints)(pod, () => []);
  return limit && `${conditionText(limit.constraint, affected)}; ${cureText(limit)}`;
}

/** Returns a candidate's pod as the scheduler will see it; undefined if it may run on the target, or if that is not known. */
function podOf(candidate: Candidate, { outcome, settings }: Assessment, target: string): SpreadPod | undefined {
  const { kind, owner, spread: constraints } = candidate;
  // A pod of a DaemonSet names its node, so no other node counts.
  if (constraints.length === 0 || kind === 'DaemonSet' || owner?.kind === 'DaemonSet') return undefined;
  if (outcome.kind !== 'place' || !isCertain(outcome) || outcome.architectures.includes(target)) return undefined;
  return spreadPod({ ...candidate, constraints }, outcome, settings);
}

function isCertain({ followsCluster, unknown }: Placement): boolean {
  return !followsCluster && unknown.length === 0;
}
