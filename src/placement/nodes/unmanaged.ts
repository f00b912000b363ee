import type { Taint } from '../patch/tolerations.ts';
import { onlyObserves, usesTaints } from '../placing.ts';
import type { Settings } from '../settings.ts';
import { isReservedKey } from './label-names.ts';
import { isRecorded, readManaged, taintText } from './managed.ts';
import { type Node, nodeArchitecture } from './node.ts';

/** A node and its taints that nobody manages. */
export type UnmanagedNode = { readonly node: Node; readonly taints: readonly Taint[] };

/**
 * Returns the taints of archaware on a node that this configuration does not manage. Nobody removes them, and in the
 * modes `affinity` and `observe` new pods stay Pending because of them. `managesNodes`: whether the node controller runs.
 *
 * A taint counts as archaware's if the node's annotation records it. A taint with the configured key that is not recorded
 * (somebody deleted the annotation) counts if its value is the node's architecture, but not with `taints.manage: false`: then
 * that key is the provider's.
 */
export function unmanagedTaints(
  node: Node,
  settings: Pick<Settings, 'mode' | 'taints'>,
  managesNodes: boolean,
): readonly Taint[] {
  if (node.deleting || node.taints === undefined || (managesNodes && settings.taints.manage)) return [];
  const managed = readManaged(node.managed);
  const { key, effect, manage } = settings.taints;
  const goesByKey = (manage || settings.mode === 'affinity') && !isReservedKey(key);
  return node.taints.flatMap((taint) => {
    const { key: itsKey, value = '', effect: itsEffect } = taint;
    if (typeof itsKey !== 'string' || typeof value !== 'string' || typeof itsEffect !== 'string') return [];
    const isInRecord = isRecorded(taint, managed);
    const isByKey = goesByKey && itsKey === key && itsEffect === effect && value === nodeArchitecture(node);
    const isManaged = managesNodes && isInRecord;
    return (isInRecord || isByKey) && !isManaged ? [{ key: itsKey, value, effect: itsEffect }] : [];
  });
}

/** Returns the nodes that have such taints. */
export function nodesWithUnmanagedTaints(
  nodes: Iterable<Node>,
  settings: Pick<Settings, 'mode' | 'taints'>,
  managesNodes: boolean,
): UnmanagedNode[] {
  return [...nodes].flatMap((node) => {
    const taints = unmanagedTaints(node, settings, managesNodes);
    return taints.length === 0 ? [] : [{ node, taints }];
  });
}

/** Returns the text of the Event for a node. `others`: how many more nodes have such taints. */
export function unmanagedTaintNote(
  taints: readonly Taint[],
  { mode }: Pick<Settings, 'mode'>,
  managesNodes: boolean,
  others: number,
): string {
  const what = taints.map(taintText).join(', ');
  const { why, remedy } = whyAndRemedy(taints, mode, managesNodes);
  const effect = usesTaints({ mode }) ? 'nothing updates or removes it' : 'new pods without a toleration stay Pending';
  const more = others === 0 ? '' : `; ${others} more node(s) have such taints`;
  return `taint ${what} is archaware's, and this configuration does not manage it (${why}): ${effect}; ${remedy}${more}`;
}

function whyAndRemedy(taints: readonly Taint[], mode: Settings['mode'], managesNodes: boolean) {
  if (onlyObserves({ mode })) {
    return {
      why: 'placement.mode is observe, which writes nothing',
      remedy: 'run archaware-controller clean; archaware is not ready until then',
    };
  }
  if (!managesNodes) {
    return {
      why: 'the loop for nodes does not run',
      remedy: 'let the loop for nodes run until it is gone, or run archaware-controller clean',
    };
  }
  return {
    why: `placement.mode is ${mode}, and the annotation archaware.dev/managed does not record it`,
    remedy: `remove it with kubectl taint nodes NAME ${taints.map(({ key, effect }) => `${key}:${effect}-`).join(' ')}`,
  };
}
