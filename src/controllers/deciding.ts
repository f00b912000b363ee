import type { Clock } from '../kit/clock.ts';
import { type Decision, decide, type Knowledge } from '../placement/decide.ts';
import type { Subject } from '../placement/subject.ts';
import type { ImageSource } from './images.ts';
import { waitedMs } from './memory.ts';
import type { Notes, ObjectRecord } from './object-record.ts';

/** Where a decision gets its knowledge from. */
export type KnowledgeParts = {
  readonly images: ImageSource;
  readonly clusterArchitectures: () => readonly string[];
  readonly clock: Clock;
};

/**
 * Decides about a pod or a template with the present knowledge, and starts lookups for unknown images. `of`: what is equal only for
 * equal images; the object waits for them from the first call on.
 */
export function decideNow(
  { images, clusterArchitectures, clock }: KnowledgeParts,
  record: ObjectRecord,
  of: NonNullable<Notes['since']>['of'],
  subject: Subject,
  answerOf: Knowledge['answerOf'],
): Decision {
  return decide(subject, {
    answerOf,
    clusterArchitectures: clusterArchitectures(),
    namesOf: images.namesOf,
    waitedMs: waitedMs(record, of, clock.monotonic()),
  });
}
