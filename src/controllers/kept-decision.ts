import { cut } from '../kit/cut.ts';
import { weightOf } from '../kit/fairness/weight.ts';
import type { Decision, FailedImage, ImageSet } from '../placement/decide.ts';

/** More bytes than the decision about nearly every pod takes. */
const MOST_BYTES = 4 * 1024;
/** How many images are kept of a decision that takes more. */
const MOST_NAMED = 8;
const LONGEST = 256;

/**
 * Returns what is kept of a decision after it was carried out: its lists are for tables and metrics only, and strangers choose how
 * long they are. The time to wait is over soon, and makes each decision unlike all others.
 */
export function keptDecision(decision: Decision): Decision {
  const lasting = decision.kind === 'wait' ? { ...decision, againInMs: undefined, givesUpInMs: undefined } : decision;
  return weightOf(lasting, MOST_BYTES) <= MOST_BYTES ? lasting : shortened(lasting);
}

function shortened(decision: Decision): Decision {
  switch (decision.kind) {
    case 'place': {
      const { failed, unknown, images } = decision;
      return { ...decision, failed: failures(failed), unknown: names(unknown), images: sets(images) };
    }
    case 'wait':
      return { ...decision, failed: failures(decision.failed), images: names(decision.images) };
    case 'hold':
      return { ...decision, images: sets(decision.images) };
    default:
      return decision satisfies never;
  }
}

function names(images: readonly string[]): string[] {
  return images.slice(0, MOST_NAMED).map((image) => cut(image, LONGEST));
}

function failures(failed: readonly FailedImage[]): FailedImage[] {
  return failed
    .slice(0, MOST_NAMED)
    .map((each) => ({ ...each, image: cut(each.image, LONGEST), message: cut(each.message, LONGEST) }));
}

function sets(images: readonly ImageSet[]): ImageSet[] {
  return images
    .slice(0, MOST_NAMED)
    .map((each) => ({ ...each, image: cut(each.image, LONGEST), platforms: each.platforms.slice(0, MOST_NAMED) }));
}
