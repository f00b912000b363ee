import { isReservedKey } from '../../kit/label-syntax.ts';
import type { Settings } from '../settings.ts';
import { isRecorded, readManaged } from './managed.ts';
import { type Node, nodeArchitecture } from './node.ts';

/**
 * Returns the nodes that carry a taint of archaware which this configuration does not manage. Nobody removes it, and in the modes
 * `affinity` and `observe` new pods stay Pending because of it. `managesNodes`: whether the node controller runs.
 *
 * A taint counts as archaware's if the node's annotation records it. A taint with the configured key that is not recorded
 * (somebody deleted the annotation) counts if its value is the node's architecture, but not with `taints.manage: false`: then
 * that key is the provider's.
 */
export function nodesWithUnmanagedTaints(
  nodes: Iterable<Node>,
  settings: Pick<Settings, 'mode' | 'taints'>,
  managesNodes: boolean,
): Node[] {
  return [...nodes].filter((node) => hasUnmanagedTaint(node, settings, managesNodes));
}

function hasUnmanagedTaint(node: Node, settings: Pick<Settings, 'mode' | 'taints'>, managesNodes: boolean): boolean {
  if (node.deleting || node.taints === undefined || (managesNodes && settings.taints.manage)) return false;
  const managed = readManaged(node.managed);
  const { key, effect, manage } = settings.taints;
  const goesByKey = (manage || settings.mode === 'affinity') && !isReservedKey(key);
  return node.taints.some((taint) => {
    const isByKey =
      goesByKey && taint.key === key && taint.effect === effect && (taint.value ?? '') === nodeArchitecture(node);
    return isRecorded(taint, managed) ? !managesNodes : isByKey;
  });
}
