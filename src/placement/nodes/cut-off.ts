import { stringAt } from '../../kit/json.ts';
import { obstaclesTo } from '../fit.ts';
import type { DaemonSet } from '../objects/daemonset.ts';
import { lacking } from '../patch/tolerations.ts';
import type { Settings } from '../settings.ts';
import { isOfKind, type Node, nodeArchitecture } from './node.ts';

/** A DaemonSet as far as it says on which nodes it runs. */
type Runner = Pick<DaemonSet, 'template' | 'selects'>;

/**
 * Whether the taint of archaware would cut a DaemonSet off from a node: it wants a pod there, and its template does not tolerate the
 * taint. `architectures`: on which its images run; undefined: not known, so on any.
 */
export function isCutOff(
  daemonSet: Runner,
  architectures: readonly string[] | undefined,
  node: Node,
  { key, effect }: Settings['taints'],
): boolean {
  const value = nodeArchitecture(node);
  // The DaemonSet controller does not mind a taint that is only a preference.
  if (value === undefined || effect !== 'NoSchedule' || architectures?.includes(value) === false) return false;
  const toleration = { key, operator: 'Equal', value, effect } as const;
  const isLacking = lacking(daemonSet.template.tolerations ?? [], [toleration]).length > 0;
  return isLacking && wantsPodOn(daemonSet, node, key);
}

/** Whether a DaemonSet wants a pod on a node, taints with the key `ours` aside. */
export function wantsPodOn(daemonSet: Runner, node: Node, ours: string): boolean {
  const taints = (node.ready ? (node.taints ?? []) : []).filter((taint) => {
    const key = stringAt(taint, 'key') ?? '';
    return key !== ours && !PASSING.test(key);
  });
  const { selects, template } = daemonSet;
  const demands = { ...selects, nodeName: undefined, tolerations: template.tolerations ?? [] };
  const { name, labels } = node;
  return obstaclesTo(demands, { name, labels, taints, unschedulable: false }).length === 0;
}

/**
 * Taints that come and go with the state of the node. A node that is not ready may also have start-up taints of others, which go
 * before daemon pods are missed.
 */
const PASSING = /^node\.(?:cloudprovider\.)?kubernetes\.io\//;

/** Returns how many nodes that a DaemonSet wants are not ready: their pods say nothing about the DaemonSet. */
export function unreadyNodesOf(daemonSet: Runner, nodes: Iterable<Node>, ours: string): number {
  let count = 0;
  for (const node of nodes) if (!node.ready && wantsPodOn(daemonSet, node, ours)) count++;
  return count;
}

/** Whether a node that a DaemonSet wants has a taint with this key and effect already. */
export function isTaintedFor(daemonSet: Runner, nodes: Iterable<Node>, taints: Settings['taints']): boolean {
  for (const node of nodes) {
    if (node.taints?.some(isOfKind(taints)) && wantsPodOn(daemonSet, node, taints.key)) return true;
  }
  return false;
}
