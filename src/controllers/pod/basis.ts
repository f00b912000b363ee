import { IGNORE_LABEL } from '../../names.ts';
import type { Decision } from '../../placement/decide.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { lacking, type Toleration } from '../../placement/patch/tolerations.ts';
import { decideAlike } from '../../placement/policy.ts';
import type { Settings } from '../../placement/settings.ts';
import type { PlacementState } from '../placement-state.ts';

/** What a decision is made of: the pod as it was read, and the settings that applied to it. */
export type Reading = Pick<PlacementState, 'uid' | 'read' | 'settings'>;

/** A write of this process that is under way or was answered: what the pod looks like once the watch shows it. */
export type Expected = Reading & { readonly tolerations: readonly Toleration[] };

/** Whether two decisions would be made of the same things. */
export function isSameBasis(one: Reading, other: Reading): boolean {
  return one.uid === other.uid && one.read === other.read && decideAlike(one.settings, other.settings);
}

/**
 * Whether a decision need not be made again. Other settings change nothing for a pod that was placed and is bound. What was
 * written is believed only as long as the pod shows it.
 */
export function stands(state: PlacementState, pod: Pod, basis: Reading): boolean {
  if (!state.final || !shows(pod, state.wrote ?? [])) return false;
  const isDone = state.decision.kind === 'place' && pod.nodeName !== undefined;
  return isSameBasis(state, isDone ? { ...basis, settings: state.settings } : basis);
}

/** Whether a pod tolerates what was written to it: another webhook may have taken it out of the very same write. */
export function shows(pod: Pick<Pod, 'tolerations'>, written: readonly Toleration[]): boolean {
  return written.length === 0 || lacking(pod.tolerations ?? [], written).length === 0;
}

/** Spec changes raise the generation (from Kubernetes 1.33 on); the rest of what decides stands beside it. */
export function whatIsRead(pod: Pod): string {
  const spec = pod.generation ?? JSON.stringify([pod.images, pod.tolerations]);
  const place = pod.owner?.kind === 'DaemonSet' ? pod.nodeName : '';
  const isGated = pod.gated !== undefined;
  return [spec, isGated, pod.phase, pod.deleting, place, pod.statement, pod.labels[IGNORE_LABEL]].join('|');
}

/** Whether a decision needs nothing more to be found out. */
export function isFinal(decision: Decision): boolean {
  return decision.kind === 'hold' || (decision.kind === 'place' && decision.unknown.length === 0);
}

/** Whether the pod was left as an earlier process had placed it, under settings that decide alike. */
export function isStanding({ decision, settings: before }: PlacementState, settings: Settings): boolean {
  return decision.kind === 'place' && decision.basis === 'written' && decideAlike(before, settings);
}

/**
 * Whether a decision is to be made again when an architecture joins the cluster: its set follows the cluster, or an earlier
 * process made it, perhaps on a guess.
 */
export function follows({ decision }: PlacementState, pod: Pod | undefined): boolean {
  if (decision.kind !== 'place') return false;
  return decision.followsCluster || (decision.basis === 'written' && pod?.nodeName === undefined);
}
