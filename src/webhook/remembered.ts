import { LRUCache } from 'lru-cache';
import type { Clock } from '../kit/clock.ts';
import {
  type AdmissionInput,
  type AdmissionKnowledge,
  type Admitted,
  admissionKey,
  readAdmitted,
} from '../placement/admission/pod.ts';
import type { ImageAnswer } from '../placement/images.ts';
import type { PodImage } from '../placement/objects/containers.ts';
import type { Reviewed } from './body.ts';

/**
 * An answer without the uid of the request that it answers. `fields`: the other fields of the response, as JSON without the opening
 * bracket: what is sent many times is written once.
 */
export type ReviewVerdict = Pick<Reviewed, 'outcome'> & { readonly fields: string };

type Remembered = {
  readonly verdict: ReviewVerdict;
  /** The images that were asked for, in order, and what was known of them. */
  readonly images: readonly { readonly image: PodImage; readonly answer: ImageAnswer }[];
  /** When it was given last, by the monotonic clock. */
  usedAt: number;
};

/** The most verdicts, and the most characters of what they are found by and say. A verdict of a usual pod has about 2,500. */
const MOST = { verdicts: 2_000, characters: 4 * 1024 * 1024 };
/** The longest key that is remembered. A pod with a longer one is decided each time. */
const LONGEST = 16 * 1024;
/** A verdict that was not given for this long is forgotten when the next one is remembered: its template may be gone. */
const UNUSED_MS = 10 * 60_000;

/**
 * Creates a function that reads a pod, does what `judge` does and remembers its verdicts, so that one decision serves all pods of a
 * template. `judge` must depend on nothing but its input, and on the time only through `answerOf`. A verdict is reused only for the
 * same key. The images are asked for each time, because that counts them and starts the lookups that are due; only verdicts on known
 * images are remembered.
 */
export function createRemembering(
  judge: (admitted: Admitted, knowledge: AdmissionKnowledge) => ReviewVerdict,
  { monotonic }: Pick<Clock, 'monotonic'>,
): (input: AdmissionInput) => ReviewVerdict {
  const remembered = new LRUCache<string, Remembered>({
    max: MOST.verdicts,
    maxSize: MOST.characters,
    sizeCalculation: ({ verdict }, key) => key.length + verdict.fields.length,
  });

  function remember(key: string, entry: Remembered): void {
    for (const oldest of remembered.rkeys()) {
      if (entry.usedAt - (remembered.peek(oldest)?.usedAt ?? 0) < UNUSED_MS) break;
      remembered.delete(oldest);
    }
    remembered.set(key, entry);
  }

  return (input) => {
    const admitted = readAdmitted(input);
    const key = admissionKey(admitted, input);
    const before = remembered.get(key);
    if (before?.images.every(({ image, answer }) => isSame(answer, input.answerOf(image)))) {
      before.usedAt = monotonic();
      return before.verdict;
    }
    const images: Remembered['images'][number][] = [];
    const answerOf = (image: PodImage) => {
      const answer = input.answerOf(image);
      images.push({ image, answer });
      return answer;
    };
    const verdict = judge(admitted, { ...input, answerOf });
    const isLasting = images.every(({ answer }) => answer.kind === 'known');
    if (isLasting && key.length <= LONGEST) remember(key, { verdict, images, usedAt: monotonic() });
    return verdict;
  };
}

/** Whether an image is known as it was. A lookup that finds the same platforms again may make this false, which does no harm. */
function isSame(before: ImageAnswer, now: ImageAnswer): boolean {
  return (
    before.kind === 'known' &&
    now.kind === 'known' &&
    before.platforms === now.platforms &&
    before.isIndex === now.isIndex &&
    before.isBundle === now.isBundle
  );
}
