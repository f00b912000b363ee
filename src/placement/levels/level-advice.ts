import { KARPENTER_POOL } from '../../names.ts';
import type { ExplainEvidence } from '../explain/explanation.ts';
import type { ExplainInput } from '../explain/input.ts';
import { isDaemonSetOfAnyGroup, isForOneNode } from '../objects/kinds.ts';
import { usesAffinity } from '../placing.ts';
import { isLevelRequired, levelLabelText, levelNote } from './cpu-level.ts';

/** Advises on a pod whose image needs a CPU level: what it does not get, and what an autoscaler must know of what it gets. */
export function adviseOnLevel(
  { workload, nodes, nodePools }: Pick<ExplainInput, 'workload' | 'nodes' | 'nodePools'>,
  { level, settings }: Pick<ExplainEvidence, 'level' | 'settings'>,
): string[] {
  if (level === undefined) return [];
  const isAgent = isDaemonSetOfAnyGroup(workload.kind) || isForOneNode(workload.pod?.owner, workload.spec);
  const writes = isAgent ? 'never' : usesAffinity(settings) ? 'yes' : 'in-other-modes';
  const note = levelNote(level, writes);
  if (note !== undefined) return [note];
  const hasKarpenter = nodePools !== undefined || nodes.some(({ labels }) => Object.hasOwn(labels, KARPENTER_POOL));
  if (writes !== 'yes' || !isLevelRequired(level) || !hasKarpenter) return [];
  const label = levelLabelText(level.level);
  return [
    `Karpenter starts a node for it only from a NodePool with ${label} in spec.template.metadata.labels, for CPUs that have the level`,
  ];
}
