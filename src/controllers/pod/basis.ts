import { IGNORE_LABEL } from '../../names.ts';
import type { Decision } from '../../placement/decide.ts';
import { isDaemonSet } from '../../placement/objects/kinds.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { lacking, type Toleration } from '../../placement/patch/tolerations.ts';
import { decideAlike } from '../../placement/policy.ts';
import type { Settings } from '../../placement/settings.ts';
import type { PlacementState } from '../placement-state.ts';

/** The input of a decision: the fields of the pod that were read, and the settings that applied. */
export type Reading = Pick<PlacementState, 'uid' | 'read' | 'settings'>;

/** The pod as the watch will show it after a write of this process. */
export type Expected = Reading & { readonly tolerations: readonly Toleration[] };

/** Whether two decisions have the same input. */
export function isSameBasis(one: Reading, other: Reading): boolean {
  return one.uid === other.uid && one.read === other.read && decideAlike(one.settings, other.settings);
}

/**
 * Whether an earlier decision is still valid. Other settings change nothing for a pod that was placed and is bound. A decision is
 * not valid if the pod lacks the tolerations that were written for it.
 */
export function isStillValid(state: PlacementState, pod: Pod, basis: Reading): boolean {
  if (!state.final || !hasTolerations(pod, state.wrote ?? [])) return false;
  const isDone = state.decision.kind === 'place' && pod.nodeName !== undefined;
  return isSameBasis(state, isDone ? { ...basis, settings: state.settings } : basis);
}

/** Whether a pod has the tolerations that were written to it: another webhook may have removed them from the same write. */
export function hasTolerations(pod: Pick<Pod, 'tolerations'>, written: readonly Toleration[]): boolean {
  return written.length === 0 || lacking(pod.tolerations ?? [], written).length === 0;
}

/** Returns the fields that a decision depends on, as text. The generation stands for the spec (from Kubernetes 1.33 on). */
export function whatIsRead(pod: Pod, generation = pod.generation, isGated = pod.gated !== undefined): string {
  const spec = generation ?? pod.large ?? JSON.stringify([pod.images, pod.tolerations]);
  // A pod that its DaemonSet no longer owns is a pod like any other.
  const place = isDaemonSet(pod.owner) ? `daemon on ${pod.nodeName ?? ''}` : '';
  // A large pod has a digest in place of all labels and the statement.
  const [statement, ignored] = [pod.large ?? pod.statement ?? '', pod.labels[IGNORE_LABEL] ?? ''];
  // Joined and not concatenated, because it is kept: V8 keeps a concatenated text as a tree of its parts.
  return [spec, isGated, pod.phase, pod.deleting, place, statement, ignored].join('|');
}

/** Whether a decision depends on no lookup any more. */
export function isFinal(decision: Decision): boolean {
  return decision.kind === 'hold' || (decision.kind === 'place' && decision.unknown.length === 0);
}

/** Whether the pod was left as an earlier process had placed it, under settings that lead to the same decision. */
export function wasLeftAsWritten({ decision, settings: before }: PlacementState, settings: Settings): boolean {
  return decision.kind === 'place' && decision.basis === 'written' && decideAlike(before, settings);
}

/**
 * Whether a decision must be made again when an architecture joins the cluster: its architectures follow the cluster, or an
 * earlier process made it, perhaps as a guess.
 */
export function follows({ decision }: PlacementState, pod: Pod | undefined): boolean {
  if (decision.kind !== 'place') return false;
  return decision.followsCluster || (decision.basis === 'written' && pod?.nodeName === undefined);
}
