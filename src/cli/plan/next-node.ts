import { type Demands, isPassing, obstaclesTo } from '../../placement/fit.ts';
import { type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import { taintsNodes } from '../../placement/nodes/pools.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { asOurs, tolerates } from '../../placement/patch/tolerations.ts';
import { wantedTolerations } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';

/**
 * Returns where a new pod like one on a wrong node would go: `nowhere`, if no node of these architectures takes it, `back`, if nothing
 * keeps it off nodes of others; undefined: to a node that runs it. What comes and goes by itself, such as a cordon, does not count.
 * `demands`: undefined if it does not select nodes.
 */
export function nextNode(
  { tolerations = [], written }: Pick<Pod, 'tolerations' | 'written'>,
  demands: Demands | undefined,
  architectures: readonly string[],
  settings: Pick<Settings, 'mode' | 'taints'>,
  nodes: Iterable<Node>,
): 'nowhere' | 'back' | undefined {
  const { mode, taints } = settings;
  // What archaware gave to the pod is not in its template.
  const own = tolerations.filter((entry) => written?.tolerations !== true || asOurs(entry, taints) === undefined);
  const wanted = [...own, ...wantedTolerations(settings, architectures)];
  const terms = written?.architectures === undefined ? demands?.terms : undefined;
  const asks = { nodeSelector: demands?.nodeSelector ?? {}, terms, nodeName: undefined, tolerations: wanted };
  let isTaken = false;
  for (const node of nodes) {
    const value = nodeArchitecture(node);
    const lasting = (node.taints ?? []).filter((entry) => !isPassing(entry));
    if (value === undefined || obstaclesTo(asks, { ...node, unschedulable: false, taints: lasting }).length > 0)
      continue;
    if (architectures.includes(value)) isTaken = true;
    else if (mode === 'taints' && taints.effect === 'NoSchedule') {
      const taint = { key: taints.key, value, effect: taints.effect };
      const isKeptOff = taintsNodes(settings, node.labels) && !wanted.some((entry) => tolerates(entry, taint));
      if (!isKeptOff) return 'back';
    }
  }
  return isTaken ? undefined : 'nowhere';
}
