import { type Decision, decide, standing } from '../../placement/decide.ts';
import type { PodImage } from '../../placement/objects/image.ts';
import { usesAffinity } from '../../placement/placing.ts';
import { overPlaced, standingArchitectures } from '../../placement/standing.ts';
import type { Subject } from '../../placement/subject.ts';
import type { PlacingOptions } from '../common-options.ts';
import { NEVER } from '../image-source.ts';
import { isFinal, waitedMs } from '../memory.ts';
import type { ObjectRecord } from '../object-record.ts';
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
  if ((placed !== undefined && !isToldToAsk) || isDone) return standing(placed ?? [], undefined);
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
