import { CPU_LEVEL_LABELS, CPU_LEVEL_VALUE, OS_LABEL } from '../../names.ts';
import { isPassing } from '../fit.ts';
import { type Node, nodeArchitecture } from '../nodes/node.ts';
import { type Carried, CPU_LEVELS, type CpuLevel, type CpuLevels, LEVELLED } from './cpu-level.ts';

/**
 * Returns for each CPU level whether a node carries its label (`v3`) or not (`not v3`); empty for a node that does not count: one of
 * another architecture, with Windows, that is being deleted, or that is kept for some pods by a taint. If the only nodes with labels
 * were kept for others, a pod that must go to one would wait for ever. A cordon and a node that is not ready pass, and count.
 */
export function levelKinds({
  deleting,
  labels,
  taints,
  reportedArchitecture,
}: Pick<Node, 'deleting' | 'labels' | 'taints' | 'reportedArchitecture'>): readonly string[] {
  const isOurs = nodeArchitecture({ reportedArchitecture }) === LEVELLED;
  if (deleting || !isOurs || (labels[OS_LABEL] ?? 'linux') !== 'linux' || isKeptForOthers(taints)) return [];
  return CPU_LEVELS.map((level) => (labels[CPU_LEVEL_LABELS[level]] === CPU_LEVEL_VALUE ? level : without(level)));
}

function without(level: CpuLevel): string {
  return `not ${level}`;
}

/** Whether a taint of somebody else stays on the node. A taint whose value is the architecture is archaware's, or like it. */
function isKeptForOthers(taints: Node['taints']): boolean {
  return (taints ?? []).some((taint) => {
    const repels = taint.effect === 'NoSchedule' || taint.effect === 'NoExecute';
    return repels && taint.value !== LEVELLED && !isPassing(taint);
  });
}

/** Returns how many nodes carry each label. `kinds`: what {@link levelKinds} returned for all nodes. */
export function levelsOf(kinds: ReadonlySet<string>): CpuLevels {
  const carried = (level: CpuLevel): Carried => {
    if (!kinds.has(level)) return 'none';
    return kinds.has(without(level)) ? 'some' : 'all';
  };
  return { v2: carried('v2'), v3: carried('v3'), v4: carried('v4') };
}

/** Returns how many of these nodes carry each label. */
export function cpuLevelsOf(nodes: Iterable<Node>): CpuLevels {
  return levelsOf(new Set([...nodes].flatMap(levelKinds)));
}
