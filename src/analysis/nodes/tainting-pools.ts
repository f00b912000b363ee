import { isReservedKey } from '../../kit/label-syntax.ts';
import { cleanNode } from '../../placement/nodes/decide-node.ts';
import { type Node, taintKind } from '../../placement/nodes/node.ts';
import { POOL_PAGE, type Pool, poolOf, poolText } from '../../placement/nodes/pools.ts';
import type { Settings } from '../../placement/settings.ts';
import type { NodePool } from './node-pools.ts';
import { countByPool, poolCounts } from './pool-counts.ts';

/** A pool whose next nodes may have the taint that `clean` removes. */
export type TaintingPool = Pool & {
  /** How many of its nodes have the taint. */
  readonly nodes: number;
  /** Whether the pool's template is known to set the taint; if not, only its nodes are known. */
  readonly certain: boolean;
};

/** Returns the kinds of the taints that `clean` removes from a node. */
function undoneKinds(node: Node, taints: Settings['taints']): string[] {
  const decision = cleanNode(node, taints);
  if (decision.kind !== 'set') return [];
  return (node.taints ?? [])
    .filter((taint) => !decision.taints.includes(taint))
    .map(({ key, effect }) => taintKind({ key: String(key), effect: String(effect) }));
}

/**
 * Returns the pools whose template sets the taint, and those of which only nodes with the taint are known. `nodePools`: undefined
 * if they could not be read.
 */
export function taintingPools(
  nodes: readonly Node[],
  nodePools: readonly NodePool[] | undefined,
  taints: Settings['taints'],
): TaintingPool[] {
  const undone = new Map(nodes.map((node) => [node.uid, undoneKinds(node, taints)]));
  const kinds = new Set([...undone.values()].flat());
  if (taints.manage && !isReservedKey(taints.key)) kinds.add(taintKind(taints));
  const counts = countByPool(nodes, ({ uid }) => (undone.get(uid) ?? []).length > 0);
  const sets = ({ taints: own, startupTaints }: NodePool) =>
    [...own, ...startupTaints].some((taint) => kinds.has(taintKind(taint)));
  const read = (nodePools ?? []).filter(sets).map(({ name }) => ({ kind: 'NodePool', name }) as const);
  const others = [
    ...new Map(nodes.flatMap((node) => poolOf(node) ?? []).map((pool) => [poolText(pool), pool])).values(),
  ];
  const perhaps = others.filter((pool) => counts.has(poolText(pool)) && !(nodePools && pool.kind === 'NodePool'));
  const counted = (pool: Pool, certain: boolean) => ({ ...pool, nodes: counts.get(poolText(pool)) ?? 0, certain });
  return [...read.map((pool) => counted(pool, true)), ...perhaps.map((pool) => counted(pool, false))];
}

/** Returns the notes that `clean` prints about these pools before it begins. `taint`: as `key:effect`. */
export function taintingPoolNotes(pools: readonly TaintingPool[], taint: string): string[] {
  const again = `no pod tolerates it any more, and pods for these nodes stay Pending (${POOL_PAGE})`;
  const sure = pools.filter(({ certain }) => certain);
  const perhaps = pools.filter(({ certain }) => !certain);
  const texts = (list: readonly TaintingPool[]) =>
    poolCounts(new Map(list.map((pool) => [poolText(pool), pool.nodes])));
  return [
    ...(sure.length > 0
      ? [
          `${texts(sure)}: the template sets the taint ${taint} itself. Remove it from spec.template.spec first: the next nodes have the taint again, ${again}`,
        ]
      : []),
    ...(perhaps.length > 0
      ? [
          `${texts(perhaps)}: these nodes carry the taint ${taint}. If the pool sets it (its taints, --register-with-taints), remove it there first: else the next nodes have the taint again, ${again}`,
        ]
      : []),
  ];
}
