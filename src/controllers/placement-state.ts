import type { Decision } from '../placement/decide.ts';
import type { SkipReason } from '../placement/eligibility.ts';
import { TOO_MANY_IMAGES } from '../placement/images.ts';
import type { Toleration } from '../placement/patch/tolerations.ts';
import type { Settings } from '../placement/settings.ts';

/** What came of the last reconciliation of a pod or a DaemonSet. */
export type PlacementState = {
  readonly uid: string;
  /** What the decision read, in short: unchanged, and final, it stands. */
  readonly read: string;
  readonly final: boolean;
  /** When it was decided, by the monotonic clock. */
  readonly at: number;
  /** What applied: the global settings or those of a policy. */
  readonly settings: Settings;
  /** The tolerations that this process wrote for the decision, as long as nothing else was written. */
  readonly wrote?: readonly Toleration[];
  readonly decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
};

/** An image that failed is asked again by its own times; whoever was placed without it looks at this pace. */
export const OPEN_AGAIN_MS = 60_000;

/** A pod that is held is decided anew this often. */
export const HELD_AGAIN_MS = 10 * 60_000;

/** The images whose lookup may change the decision. */
export function imagesAwaited(decision: Decision): readonly string[] {
  if (decision.kind === 'hold') return [];
  const surplus = decision.failed.find(({ code }) => code === TOO_MANY_IMAGES)?.image;
  const unknown = imagesUnknown(decision);
  if (surplus === undefined) return unknown;
  // Once: the same image with another pull policy may be among those that are asked about.
  const at = unknown.indexOf(surplus);
  return unknown.filter((_, index) => index !== at);
}

/** The images that a decision was made without. */
export function imagesUnknown(decision: Decision): readonly string[] {
  if (decision.kind === 'wait') return decision.images;
  return decision.kind === 'place' ? decision.unknown : [];
}
