import { type Decision, decide, standing } from '../../placement/decide.ts';
import { narrow } from '../../placement/images.ts';
import type { PodImage } from '../../placement/objects/image.ts';
import { onlyObserves, usesAffinity } from '../../placement/placing.ts';
import { startsAtLatestText, WAITS_FOR_LOOKUP } from '../../placement/reasons.ts';
import { overPlaced, standingArchitectures } from '../../placement/standing.ts';
import type { Subject } from '../../placement/subject.ts';
import { type Problem, preferenceProblems, problemsOf, secretProblems } from '../announce.ts';
import type { PlacingOptions } from '../common-options.ts';
import { NEVER, type SecretProblem } from '../image-source.ts';
import { isFinal, waitedMs } from '../memory.ts';
import { note, type ObjectRecord } from '../object-record.ts';
import type { Backlog } from './backlog.ts';
import { type PodAtHand, wasLeftAsWritten } from './basis.ts';

/** The pod of one reconciliation, with its namespace, settings and subject. */
export type PodCase = PodAtHand & {
  readonly key: string;
  readonly record: ObjectRecord;
  readonly subject: Subject;
  readonly signal: AbortSignal;
};

type DecisionParts = Pick<PlacingOptions, 'images' | 'clusterArchitectures' | 'clock' | 'isPaced'> & {
  readonly backlog: Backlog;
};

/**
 * Decides about a pod with the present knowledge of its images, and starts lookups for the unknown ones. A pod that an earlier
 * process placed stays as it is (docs/decisions/019-what-was-written-is-evidence.md).
 */
export function decidePod(parts: DecisionParts, at: PodCase): Decision {
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
  const decision = decide(subject, {
    ...{
      answerOf,
      namesOf: images.namesOf,
      waitedMs: waited,
      mayHold: subject.isGated && usesAffinity(subject.settings),
    },
    clusterArchitectures: parts.clusterArchitectures(),
  });
  return overPlaced(decision, pod, placed);
}

/** Returns the problems of a pod that was decided. `unusable`: its pull secrets that cannot be used. */
export function problemsOfPod(
  at: PodCase,
  decision: Decision,
  unusable: readonly SecretProblem[],
  clock: PlacingOptions['clock'],
): Problem[] {
  const { pod, subject, settings } = at;
  return [
    ...problemsOf(pod, pod.namespace, decision, settings, outlookOf(at, decision, clock)),
    ...secretProblems(unusable),
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
  const atMs = wall() + decision.givesUpInMs;
  const before = record.notes?.startsAt;
  if (before !== undefined && Math.abs(before - atMs) <= SAME_TIME_MS) return startsAtLatestText(before);
  note(record, 'startsAt', atMs);
  return startsAtLatestText(atMs);
}
