import type { Node } from '../../placement/nodes/node.ts';
import { joinedUntainted, POOL_PAGE, type PoolSettings, poolOf, poolText } from '../../placement/nodes/pools.ts';

const EXAMPLES = 5;

/** Counts the nodes for which `isLike` is true by pool (as text, sorted). */
export function countByPool(nodes: Iterable<Node>, isLike: (node: Node) => boolean): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const node of nodes) {
    const pool = poolOf(node);
    if (pool !== undefined && isLike(node)) counts.set(poolText(pool), (counts.get(poolText(pool)) ?? 0) + 1);
  }
  return new Map([...counts].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/**
 * Returns the text of `plan` for pools whose nodes lack the taint now; undefined if there are none. `readable`: the NodePools
 * were read and are reported elsewhere.
 */
export function untaintedPoolsNote(
  nodes: Iterable<Node>,
  settings: PoolSettings,
  readable: boolean,
): string | undefined {
  const counts = countByPool(
    nodes,
    (node) => joinedUntainted(node, settings) !== undefined && !(readable && poolOf(node)?.kind === 'NodePool'),
  );
  if (counts.size === 0) return undefined;
  const { key, effect } = settings.taints;
  return (
    `nodes without the taint ${key}:${effect} belong to pools: ${poolCounts(counts)}. If these pools are scaled, their ` +
    `templates need the taint: an autoscaler that plans without it may start nodes that pending pods cannot use (${POOL_PAGE})`
  );
}

/** Returns the first few pools with their counts: `NodePool a (2 nodes), EKS node group b (1 node)`. */
export function poolCounts(counts: ReadonlyMap<string, number>): string {
  const texts = [...counts].map(([pool, count]) => `${pool} (${count} ${count === 1 ? 'node' : 'nodes'})`);
  const more = texts.length > EXAMPLES ? `, and ${texts.length - EXAMPLES} more` : '';
  return `${texts.slice(0, EXAMPLES).join(', ')}${more}`;
}
