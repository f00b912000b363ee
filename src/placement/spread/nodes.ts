import type { JsonObject } from '../../kit/json.ts';
import { isPassing } from '../fit.ts';
import type { Node } from '../nodes/node.ts';
import { nodeArchitecture } from '../nodes/node.ts';
import { taintsNodes } from '../nodes/pools.ts';
import type { Settings } from '../settings.ts';

/**
 * Returns the nodes as the scheduler will see them: with archaware's taint, also where it is not written yet, and without what
 * passes (a cordon, pressure, a node that an autoscaler removes).
 */
export function lastingNodes(nodes: Iterable<Node>, settings: Pick<Settings, 'mode' | 'taints'>): Node[] {
  return [...nodes]
    .filter(({ deleting }) => !deleting)
    .map((node) => ({ ...node, unschedulable: false, taints: lastingTaints(node, settings) }));
}

function lastingTaints(node: Node, settings: Pick<Settings, 'mode' | 'taints'>): readonly JsonObject[] {
  const { key, effect } = settings.taints;
  const lasting = (node.taints ?? []).filter((taint) => !isPassing(taint));
  const value = nodeArchitecture(node);
  if (value === undefined || !taintsNodes(settings, node.labels)) return lasting;
  return [...lasting.filter((taint) => taint.key !== key || taint.effect !== effect), { key, value, effect }];
}
