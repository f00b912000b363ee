import type { JsonObject } from '../../kit/json.ts';
import { ARCHITECTURE_LABEL, OS_LABEL } from '../../names.ts';
import { isPassing } from '../fit.ts';
import { type Node, nodeArchitecture, readNode } from '../nodes/node.ts';
import { taintsNodes } from '../nodes/pools.ts';
import type { Settings } from '../settings.ts';
import type { SpreadPod } from './limit.ts';

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

/**
 * Returns one node for each architecture, each in a domain of its own, for a cluster whose nodes are not known. They have what the pod's
 * node selector asks for.
 */
export function standInsFor(
  architectures: readonly string[],
  { constraints, authored: { nodeSelector } }: Pick<SpreadPod, 'constraints' | 'authored'>,
): Node[] {
  return architectures.map((architecture) => {
    const own = constraints.map(({ topologyKey }) => [topologyKey, architecture] as const);
    const labels = {
      ...nodeSelector,
      ...Object.fromEntries(own),
      [ARCHITECTURE_LABEL]: architecture,
      [OS_LABEL]: 'linux',
    };
    const nodeInfo = { architecture };
    return readNode({ metadata: { name: architecture, labels }, status: { nodeInfo } });
  });
}
