import { type Decision, decide, standing } from '../../placement/decide.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import type { Settings } from '../../placement/settings.ts';
import { overPlaced, standingArchitectures } from '../../placement/standing.ts';
import type { Subject } from '../../placement/subject.ts';
import { type ImageSource, NEVER } from '../images.ts';
import type { PlacementState } from '../placement-state.ts';
import type { Backlog } from './backlog.ts';
import { wasLeftAsWritten } from './basis.ts';

/** The sources of the input of a pod's decision. */
export type DecisionParts = {
  readonly images: ImageSource;
  readonly clusterArchitectures: () => readonly string[];
  /** Whether images of bound pods are looked up slowly. */
  readonly isPaced: boolean;
  readonly backlog: Backlog;
  /** Returns the milliseconds since the pod was first decided with these images. */
  readonly waitedMs: (key: string, pod: Pod) => number;
};

/**
 * Decides about a pod with the present knowledge of its images, and starts lookups for the unknown ones. A pod that an earlier
 * process placed stays as it is (docs/decisions/019-what-was-written-is-evidence.md).
 */
export function decidePod(
  parts: DecisionParts,
  key: string,
  pod: Pod,
  settings: Settings,
  subject: Subject,
  before: PlacementState | undefined,
): Decision {
  const { images, isPaced, backlog, waitedMs } = parts;
  const isFirst = before === undefined || before.uid !== pod.uid || wasLeftAsWritten(before, settings);
  const placed = isFirst ? standingArchitectures(subject, pod.written, images.namesOf) : undefined;
  // The pod is bound, and in the mode `affinity` nothing can be added to a bound pod.
  const isDone = pod.nodeName !== undefined && settings.mode === 'affinity';
  const isToldToAsk = placed !== undefined && before !== undefined && !before.final;
  if ((placed !== undefined && !isToldToAsk) || isDone) return standing(placed ?? [], undefined);
  const isPacedNow = pod.nodeName !== undefined && isPaced;
  const { namespace, pullSecrets } = pod;
  const ask = (image: Pod['images'][number]) => images.answer(image, namespace, pullSecrets);
  const recall = (image: Pod['images'][number]) => images.answer(image, namespace, pullSecrets, NEVER);
  const decision = decide(subject, {
    clusterArchitectures: parts.clusterArchitectures(),
    namesOf: images.namesOf,
    answerOf: isPacedNow ? backlog.answers(key, recall, ask) : ask,
    waitedMs: waitedMs(key, pod),
  });
  return overPlaced(decision, pod, placed);
}
