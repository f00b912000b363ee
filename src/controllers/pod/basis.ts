import type { Namespace } from '../../placement/objects/namespace.ts';
import { type Pod, podAfter } from '../../placement/objects/pod.ts';
import { lacking, type Toleration } from '../../placement/patch/tolerations.ts';
import type { PlacementIntent } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import { readPodSubject } from '../../placement/subject.ts';
import { behindMs, type Holding, holds } from '../memory.ts';
import { note, type ObjectRecord } from '../object-record.ts';

/** A pod with what applies to it. */
export type PodAtHand = { readonly pod: Pod; readonly namespace: Namespace; readonly settings: Settings };

/** Returns the key of a pod's subject. */
export function keyOf({ pod, namespace, settings }: PodAtHand): string {
  return readPodSubject(pod, namespace, settings).key;
}

/**
 * Whether an earlier decision is still valid. Other settings change nothing for a pod that was placed and is bound. A decision is
 * not valid if the pod lacks the tolerations that were written for it.
 */
export function isStillValid(record: ObjectRecord, at: PodAtHand): record is Holding {
  const { pod } = at;
  if (record.decision === undefined || !hasTolerations(pod, record.notes?.wrote ?? [])) return false;
  const isDone = record.decision.kind === 'place' && pod.nodeName !== undefined;
  return holds(record, () => keyOf(isDone ? { ...at, settings: record.settings } : at));
}

/**
 * Whether the event of a pod needs no reconciliation: nothing that decides has changed, or it shows the write under way. Such an event
 * often arrives before the answer to the write.
 */
export function isUpToDate(record: ObjectRecord, at: PodAtHand, now: number): boolean {
  if (!isStillValid(record, at)) return record.notes?.expected !== undefined && record.notes.expected === keyOf(at);
  confirm(record, at.pod, now);
  return true;
}

/** Forgets written tolerations that the watch has shown: nothing can remove them any more. This saves memory. */
export function confirm(record: ObjectRecord, pod: Pod, now: number): void {
  if (record.notes?.wrote !== undefined && behindMs(record, pod, now) === 0) note(record, 'wrote', undefined);
}

/** Returns the key of a pod's subject after a write. */
export function expectedKey(at: PodAtHand, placing: PlacementIntent | undefined): string {
  return keyOf({ ...at, pod: podAfter(at.pod, placing?.tolerations ?? [], {}) });
}

/** Whether a pod has the tolerations that were written to it: another webhook may have removed them from the same write. */
export function hasTolerations(pod: Pick<Pod, 'tolerations'>, written: readonly Toleration[]): boolean {
  return written.length === 0 || lacking(pod.tolerations ?? [], written).length === 0;
}

/** Whether the pod was left as an earlier process had placed it, under settings that lead to the same decision. */
export function wasLeftAsWritten(record: ObjectRecord, at: PodAtHand): boolean {
  if (record.decision === undefined) return false;
  if (record.decision.kind !== 'place' || record.decision.basis !== 'written') return false;
  return record.settings === at.settings || keyOf({ ...at, settings: record.settings }) === keyOf(at);
}

/**
 * Whether a decision must be made again when an architecture joins the cluster: its architectures follow the cluster, or an
 * earlier process made it, perhaps as a guess.
 */
export function follows({ decision }: ObjectRecord, pod: Pod | undefined): boolean {
  if (decision?.kind !== 'place') return false;
  return decision.followsCluster || (decision.basis === 'written' && pod?.nodeName === undefined);
}
