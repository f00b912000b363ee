import { isOurTaint, readManaged } from '../../placement/nodes/managed.ts';
import { isOfKind, type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import { taintsNodes } from '../../placement/nodes/pools.ts';
import type { Settings } from '../../placement/settings.ts';

/** How many nodes of an architecture have which taint. */
export type NodeCount = {
  /** `unknown` before the kubelet reported it. */
  readonly architecture: string;
  readonly total: number;
  readonly tainted: number;
  readonly untainted: number;
  /** Nodes on which somebody else set a taint with the configured key and effect, as some providers do. */
  readonly foreign: number;
};

/** Counts nodes by architecture and taint, sorted by architecture. */
export function countNodes(nodes: Iterable<Node>, { taints }: Pick<Settings, 'taints'>): NodeCount[] {
  const counts = new Map<string, NodeCount>();
  for (const node of nodes) {
    const architecture = nodeArchitecture(node) ?? 'unknown';
    const count = counts.get(architecture) ?? { architecture, total: 0, tainted: 0, untainted: 0, foreign: 0 };
    const state = taintState(node, taints);
    counts.set(architecture, { ...count, total: count.total + 1, [state]: count[state] + 1 });
  }
  return [...counts.values()].sort((one, other) => (one.architecture < other.architecture ? -1 : 1));
}

function taintState(node: Node, taints: Settings['taints']): 'tainted' | 'untainted' | 'foreign' {
  const managed = readManaged(node.managed);
  const present = node.taints ?? [];
  if (present.some((taint) => isOurTaint(taint, managed, taints))) return 'tainted';
  return present.some(isOfKind(taints)) ? 'foreign' : 'untainted';
}

/** Returns the names of the nodes that have no taint although the configuration gives them one. */
export function nodesWithoutTaint(nodes: Iterable<Node>, settings: Pick<Settings, 'mode' | 'taints'>): string[] {
  return [...nodes]
    .filter((node) => !node.deleting && nodeArchitecture(node) !== undefined && taintsNodes(settings, node.labels))
    .filter((node) => taintState(node, settings.taints) === 'untainted')
    .map(({ name }) => name);
}
