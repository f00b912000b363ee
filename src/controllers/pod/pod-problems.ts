import type { Clock } from '../../kit/clock.ts';
import type { Decision } from '../../placement/decide.ts';
import { onlyObserves, usesAffinity } from '../../placement/placing.ts';
import { startsAtLatestText, WAITS_FOR_LOOKUP } from '../../placement/reasons.ts';
import { type Problem, preferenceProblems, problemsOf, secretProblems } from '../announce.ts';
import type { SecretProblem } from '../image-source.ts';
import { note } from '../object-record.ts';
import type { PodCase } from './decision.ts';

/** Returns the problems of a pod that was decided. `unusable`: its pull secrets that cannot be used. */
export function problemsOfPod(
  at: PodCase,
  decision: Decision,
  unusable: readonly SecretProblem[],
  clock: Pick<Clock, 'wall'>,
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
function outlookOf({ pod, record, settings }: PodCase, decision: Decision, { wall }: Pick<Clock, 'wall'>): string {
  if (decision.kind !== 'wait' || pod.nodeName !== undefined || onlyObserves(settings)) return '';
  if (decision.givesUpInMs === undefined) return settings.unresolvable === 'wait' ? WAITS_FOR_LOOKUP : '';
  const atMs = wall() + decision.givesUpInMs;
  const before = record.notes?.startsAt;
  if (before !== undefined && Math.abs(before - atMs) <= SAME_TIME_MS) return startsAtLatestText(before);
  note(record, 'startsAt', atMs);
  return startsAtLatestText(atMs);
}
