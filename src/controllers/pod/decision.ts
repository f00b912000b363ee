import { isSame } from '../../kit/json.ts';
import type { Store } from '../../kube/watch/collection.ts';
import { type Decision, decide, standing } from '../../placement/decide.ts';
import { narrow } from '../../placement/images.ts';
import { type Problem, preferenceProblems, problemsOf, secretProblems } from '../../placement/object-problems.ts';
import type { PodImage } from '../../placement/objects/containers.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { lacking, type Toleration } from '../../placement/patch/tolerations.ts';
import { onlyObserves, overPlaced, standingArchitectures, usesAffinity } from '../../placement/placing.ts';
import { startsAtLatestText, WAITS_FOR_LOOKUP } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import { keyOf, readPodSubject, type Subject } from '../../placement/subject.ts';
import type { PlacingOptions } from '../controller-options.ts';
import { NEVER } from '../image-source.ts';
import { behindMs, type Holding, holds, isFinal, type Memory, note, type ObjectRecord, waitedMs } from '../memory.ts';
import type { Notices } from '../refusals.ts';
import type { Backlog } from './backlog.ts';

/** A pod with what applies to it. */
export type PodAtHand = { readonly pod: Pod; readonly namespace: Namespace; readonly settings: Settings };

function subjectOf({ pod, namespace, settings }: PodAtHand): Subject {
  return readPodSubject(pod, namespace, settings);
}

/**
 * Whether an earlier decision is still valid. Other settings change nothing for a pod that was placed and is bound. A decision is
 * not valid if the pod lacks the tolerations that were written for it.
 */
export function isStillValid(record: ObjectRecord, at: PodAtHand): record is Holding {
  const { pod } = at;
  if (record.decision === undefined || !hasTolerations(pod, record.notes?.wrote ?? [])) return false;
  const isDone = record.decision.kind === 'place' && pod.nodeName !== undefined;
  return holds(record, () => keyOf(subjectOf(isDone ? { ...at, settings: record.settings } : at)));
}

/**
 * Whether the event of a pod needs no reconciliation: nothing that decides has changed, or it shows the write under way. Such an event
 * often arrives before the answer to the write.
 */
export function isUpToDate(record: ObjectRecord, at: PodAtHand, now: number): boolean {
  if (!isStillValid(record, at)) {
    const expected = record.notes?.expected;
    return expected !== undefined && isSame(expected, subjectOf(at));
  }
  confirm(record, at.pod, now);
  return true;
}

/** Forgets written tolerations that the watch has shown: nothing can remove them any more. This saves memory. */
export function confirm(record: ObjectRecord, pod: Pod, now: number): void {
  if (record.notes?.wrote !== undefined && behindMs(record, pod, now) === 0) note(record, 'wrote', undefined);
}

/** Whether a pod has the tolerations that were written to it: another webhook may have removed them from the same write. */
export function hasTolerations(pod: Pick<Pod, 'tolerations'>, written: readonly Toleration[]): boolean {
  return written.length === 0 || lacking(pod.tolerations ?? [], written).length === 0;
}

/** Whether the pod was left as an earlier process had placed it, under settings that lead to the same decision. */
export function wasLeftAsWritten(record: ObjectRecord, at: PodAtHand): boolean {
  if (record.decision === undefined) return false;
  if (record.decision.kind !== 'place' || record.decision.basis !== 'written') return false;
  return record.settings === at.settings || isSame(subjectOf({ ...at, settings: record.settings }), subjectOf(at));
}

/**
 * Whether a decision must be made again when an architecture joins the cluster: its architectures follow the cluster, or an
 * earlier process made it, perhaps as a guess.
 */
export function follows({ decision }: ObjectRecord, pod: Pod | undefined): boolean {
  if (decision?.kind !== 'place') return false;
  return decision.followsCluster || (decision.basis === 'written' && pod?.nodeName === undefined);
}

/** The pod of one reconciliation, with its namespace, settings and subject. */
export type PodCase = PodAtHand & {
  readonly key: string;
  readonly record: ObjectRecord;
  readonly subject: Subject;
  readonly signal: AbortSignal;
};

export type PodControllerOptions = PlacingOptions & {
  readonly pods: Store<Pod>;
  readonly onPlaced?: (seconds: number) => void;
};

/** What the steps of a reconciliation share: the options, and what the controller knows. */
export type PodParts = PodControllerOptions & Notices & { readonly memory: Memory; readonly backlog: Backlog };

/** Forgets a pod that is gone. */
export function forgetPod({ memory, backlog, onDecided }: PodParts, key: string): void {
  for (const each of [memory, backlog]) each.forget(key);
  onDecided(key);
}

/**
 * Decides about a pod with the present knowledge of its images, and starts lookups for the unknown ones. A pod that an earlier
 * process placed stays as it is (docs/decisions/019-what-was-written-is-evidence.md).
 */
export function decidePod(parts: PodParts, at: PodCase): Decision {
  const { key, pod, record, subject } = at;
  const { images, isPaced, backlog } = parts;
  const { namespace, pullSecrets, nodeName } = pod;
  const isFirst = record.decision === undefined || wasLeftAsWritten(record, at);
  const placed = isFirst ? standingArchitectures(subject, pod.written, images.namesOf) : undefined;
  // The pod is bound, and in the mode `affinity` nothing can be added to a bound pod.
  const isDone = nodeName !== undefined && subject.settings.mode === 'affinity';
  const isToldToAsk = record.decision !== undefined && (record.at === undefined || !isFinal(record.decision));
  if ((placed !== undefined && !isToldToAsk) || isDone) {
    // What was published is checked again by its use: this starts the lookups that are due, and waits for none.
    if (record.decision === undefined && pod.written?.byPolicy && nodeName === undefined) {
      narrow(subject, { namesOf: images.namesOf, answerOf: (image) => images.answer(image, namespace, pullSecrets) });
    }
    return standing(placed ?? [], undefined);
  }
  const ask = (image: PodImage) => images.answer(image, namespace, pullSecrets);
  const recall = (image: PodImage) => images.answer(image, namespace, pullSecrets, NEVER);
  const answerOf = nodeName !== undefined && isPaced ? backlog.answers(key, recall, ask) : ask;
  const waited = waitedMs(record, pod.images, parts.clock.monotonic());
  const mayHold = subject.isGated && usesAffinity(subject.settings);
  const clusterArchitectures = parts.clusterArchitectures();
  const known = { answerOf, namesOf: images.namesOf, waitedMs: waited, mayHold, clusterArchitectures };
  const decision = decide(subject, known);
  return overPlaced(decision, pod, placed);
}

/** Returns the problems of a pod that was decided. */
export function problemsOfPod({ images, clock }: PodParts, at: PodCase, decision: Decision): Problem[] {
  const { pod, subject, settings } = at;
  return [
    ...problemsOf(pod, pod.namespace, decision, settings, outlookOf(at, decision, clock)),
    ...secretProblems(images.unusableSecrets(pod.namespace, pod.pullSecrets)),
    ...(pod.nodeName === undefined && usesAffinity(settings) ? preferenceProblems(subject) : []),
  ];
}

/** Two calculations of one time differ, because the two clocks are not read at once. */
const SAME_TIME_MS = 5_000;

/**
 * Returns the time at which a pod starts without an answer about its images, as text for its Events, or that it waits until a
 * lookup succeeds. Empty if the pod does not wait, has a node already, or if that is not known yet. The time is remembered: it must
 * not change with each retry, or each retry would be a new Event.
 */
function outlookOf({ pod, record, settings }: PodCase, decision: Decision, { wall }: PlacingOptions['clock']): string {
  if (decision.kind !== 'wait' || pod.nodeName !== undefined || onlyObserves(settings)) return '';
  if (decision.givesUpInMs === undefined) return settings.unresolvable === 'wait' ? WAITS_FOR_LOOKUP : '';
  // A gate of others may stay for any time.
  if (pod.gated !== undefined && pod.gated.gates.length > 1) return '';
  const atMs = wall() + decision.givesUpInMs;
  const before = record.notes?.startsAt;
  if (before !== undefined && Math.abs(before - atMs) <= SAME_TIME_MS) return startsAtLatestText(before);
  note(record, 'startsAt', atMs);
  return startsAtLatestText(atMs);
}
