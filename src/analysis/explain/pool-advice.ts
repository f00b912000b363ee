import type { Obstacle } from '../../placement/fit.ts';
import { type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import { type PoolSettings, poolOf, poolText } from '../../placement/nodes/pools.ts';
import { type NodePool, nodePoolProblems } from '../nodes/node-pools.ts';

/** The advice about node pools for a pod that fits no node. */
export type PoolAdvice = {
  /** Steps, the easiest first. */
  readonly steps: readonly string[];
  /** Whether a pool can start a node that could take the pod. Then the pod needs no toleration for the taints of others. */
  readonly canGrow: boolean;
};

/** How many pools a line names at most. */
const EXAMPLES = 3;

/**
 * Advises on node pools for a pod that fits no node. `architectures`: those of the decision, undefined for any. `nodePools`:
 * undefined if they were not read; then the pools are known only from the labels of their nodes.
 */
export function adviseOnPools(
  nodes: readonly Node[],
  nodePools: readonly NodePool[] | undefined,
  architectures: readonly string[] | undefined,
  settings: PoolSettings,
): PoolAdvice {
  const mayRun = (of: readonly string[] | undefined) =>
    architectures === undefined || of === undefined || of.some((architecture) => architectures.includes(architecture));
  const read = (nodePools ?? []).map((pool) => ({ pool, problems: nodePoolProblems(pool, settings) }));
  const byLabel = nodes.flatMap((node) => {
    const pool = poolOf(node);
    const architecture = nodeArchitecture(node);
    const isRead = nodePools !== undefined && pool?.kind === 'NodePool';
    return pool === undefined || isRead || !mayRun(architecture === undefined ? undefined : [architecture])
      ? []
      : [poolText(pool)];
  });
  const growing = [
    ...read.filter(({ pool }) => mayRun(pool.architectures)).map(({ pool }) => `NodePool ${pool.name}`),
    ...new Set(byLabel),
  ];
  const wrong = read.flatMap(({ pool, problems }) => problems.map(({ note }) => `NodePool ${pool.name} ${note}`));
  const named = growing.slice(0, EXAMPLES).join(' or ');
  const more = growing.length > EXAMPLES ? `, and ${growing.length - EXAMPLES} more` : '';
  const grow = `a node of ${named}${more} could take it: see the Events of the pod and the limits of the pool for why none is started`;
  return { steps: [...wrong, ...(growing.length > 0 ? [grow] : [])], canGrow: growing.length > 0 };
}

/** Whether only taints of others keep a pod off a node. If a pool can grow, tolerating those is the wrong advice. */
export function isKeptOffByOthers(obstacles: readonly Obstacle[], { taints }: PoolSettings): boolean {
  const isOfOthers = (key: string) => key !== taints.key && !key.startsWith('node.kubernetes.io/');
  const isOthers = (obstacle: Obstacle) => obstacle.kind === 'taint' && isOfOthers(obstacle.taint.key);
  return obstacles.length > 0 && obstacles.every(isOthers);
}
