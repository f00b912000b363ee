import type { Decision } from '../placement/decide.ts';
import type { SkipReason } from '../placement/eligibility.ts';
import { TOO_MANY_IMAGES } from '../placement/images.ts';
import type { Toleration } from '../placement/patch/tolerations.ts';
import type { Settings } from '../placement/settings.ts';

/** The result of the last reconciliation of a pod or a DaemonSet. */
export type PlacementState = {
  readonly uid: string;
  /** The fields that the decision read, as text. If they are unchanged and the decision is final, it need not be made again. */
  readonly read: string;
  readonly final: boolean;
  /** The time of the decision, by the monotonic clock, in whole milliseconds: V8 keeps a fraction in an object of its own. */
  readonly at: number;
  /** The settings that applied: the global ones or those of a policy. */
  readonly settings: Settings;
  /** The tolerations that this process wrote for the decision; absent once the watch has shown them. */
  readonly wrote?: readonly Toleration[];
  readonly decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
};

/** The interval at which an object that was placed without an unknown image is decided again. The image has its own retry times. */
export const OPEN_AGAIN_MS = 60_000;

/** The interval at which a held pod is decided again. */
export const HELD_AGAIN_MS = 10 * 60_000;

/** Returns the images whose lookup may change the decision. */
export function imagesAwaited(decision: Decision): readonly string[] {
  if (decision.kind === 'hold') return [];
  const surplus = decision.failed.find(({ code }) => code === TOO_MANY_IMAGES)?.image;
  const unknown = imagesUnknown(decision);
  if (surplus === undefined) return unknown;
  // Only one entry is removed: the same image with another pull policy may be among those that are looked up.
  const at = unknown.indexOf(surplus);
  return unknown.filter((_, index) => index !== at);
}

/** Returns the images that were not known at the decision. */
export function imagesUnknown(decision: Decision): readonly string[] {
  if (decision.kind === 'wait') return decision.images;
  return decision.kind === 'place' ? decision.unknown : [];
}
