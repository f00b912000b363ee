import { isoTime, utcTime } from '../kit/duration.ts';
import type { JsonObject } from '../kit/json.ts';
import { isWebAssembly } from '../kit/platform.ts';
import { ARCHITECTURES_ANNOTATION } from '../names.ts';
import type { Decision, DecisionBasis, FailedImage, ImageSet, QueuedImage } from './decide.ts';
import { type SkipReason, skipFacts } from './eligibility.ts';
import type { Asked } from './objects/asked-platform.ts';
import type { PodTemplate } from './objects/pod.ts';
import { tooLargeNote } from './objects/too-large.ts';
import { asOurs, type Toleration } from './patch/tolerations.ts';
import type { Settings } from './settings.ts';

/** Returns each image with its platforms: `nginx:1.27 (linux/amd64, linux/arm64); volume data: model:1 (linux/s390x)`. */
export function describeSets(images: readonly ImageSet[]): string {
  return images.map((each) => `${imageText(each)} (${each.platforms.join(', ') || 'none'})`).join('; ');
}

/** Returns an image as text: `nginx:1.27`, or `volume data: model:1` for the image of a volume. */
export function imageText({ image, volume }: Pick<ImageSet, 'image' | 'volume'>): string {
  return volume === undefined ? image : `volume ${volume}: ${image}`;
}

/** Returns the text for a pod that is held because its images have no architecture in common. */
export function noCommonArchitectureNote(
  images: readonly ImageSet[],
  os: string,
  schedulable: readonly string[],
): string {
  return `no architecture for ${os} is common to all images${withinText(schedulable)}: ${describeHeld(images)}`;
}

/** Returns the text for a pod that is held: its images have nothing in common, or not what it asks for itself. */
export function heldNote(
  { images, asked }: Pick<Extract<Decision, { kind: 'hold' }>, 'images' | 'asked'>,
  os: string,
  schedulable: readonly string[],
): string {
  if (asked === undefined) return noCommonArchitectureNote(images, os, schedulable);
  if (images.length === 0)
    return `requires ${asked}, but architectures.schedulable allows ${schedulable.join(', ')} only`;
  return `requires ${asked}, which its images do not have${withinText(schedulable)}: ${describeHeld(images)}`;
}

/** Returns the images of a pod that have no architecture in common, after those that lack a RuntimeClass. */
export function describeHeld(images: readonly ImageSet[]): string {
  const wasm = webAssemblyAmong(images);
  const missing =
    wasm.length === 0 ? '' : `WebAssembly without a RuntimeClass (set spec.runtimeClassName): ${few(wasm)}; `;
  return missing + describeSets(images);
}

/** Returns the images that are WebAssembly in a pod without a RuntimeClass: no node can run these. */
export function webAssemblyAmong(images: readonly ImageSet[]): string[] {
  return images.flatMap(({ image, volume, platforms }) => {
    const isContainers = volume === undefined && image !== ARCHITECTURES_ANNOTATION;
    return isContainers && isWebAssembly(platforms.map((platform) => platform.split('/')[1] ?? '')) ? image : [];
  });
}

/** Returns ` within architectures.schedulable (amd64)`, or an empty text if that key excludes nothing. */
export function withinText(schedulable: readonly string[]): string {
  return schedulable.length > 0 ? ` within architectures.schedulable (${schedulable.join(', ')})` : '';
}

/** Returns the text for an image that could not be resolved, or that was not looked up because of what others met. */
export function unresolvableNote({ image, volume, code, message, registry, isUnasked }: FailedImage): string {
  const name = `image ${image}${volume === undefined ? '' : ` of volume ${volume}`}`;
  if (isUnasked) return `${name} was not looked up yet (${code}): ${message}`;
  return `${name} could not be resolved (${code}) at ${registry || 'no registry'}: ${message}`;
}

/** Returns the text for an image that waits in a registry's line, and how long that takes, which changes all the time. */
export function queuedNote({ image, volume, registry, inMs }: QueuedImage): readonly [note: string, estimate: string] {
  const name = `image ${image}${volume === undefined ? '' : ` of volume ${volume}`}`;
  const seconds = Math.max(1, Math.ceil(inMs / 1000));
  return [
    `${name} was not looked up yet: waits for its turn at ${registry}, which limits requests`,
    `, about ${seconds} s`,
  ];
}

/** The text for a pod that waits as long as no lookup succeeds. */
export const WAITS_FOR_LOOKUP = 'the pod waits until a lookup succeeds (images.unresolvable: wait)';

/** Returns the text for a pod that waits for its images until a time, in milliseconds since the epoch, and no longer. */
export function startsAtLatestText(atMs: number): string {
  return `the pod starts by itself at ${utcTime(atMs)} at the latest`;
}

/**
 * Returns the time that {@link startsAtLatestText} wrote into a note, in milliseconds since the epoch; undefined if there is none.
 * `writtenMs`: when the note was written, not later than that time.
 */
export function readStartsAtLatest(note: string, writtenMs: number): number | undefined {
  const [, time] = /the pod starts by itself at (\d\d:\d\d:\d\d) UTC at the latest/.exec(note) ?? [];
  if (time === undefined || !Number.isFinite(writtenMs)) return undefined;
  const atMs = Date.parse(`${isoTime(writtenMs).slice(0, 10)}T${time}Z`);
  if (Number.isNaN(atMs)) return undefined;
  // The note was written before midnight, and the time is after it.
  return atMs < writtenMs - 1000 ? atMs + 86_400_000 : atMs;
}

/**
 * Returns the text for a pod that was placed although not all of its images are known, or although they have nothing in common.
 * `verb`: what the pod does with the taints of these architectures.
 */
export function openNote(
  decision: Extract<Decision, { kind: 'place' }>,
  verb: 'tolerates' | 'would tolerate' = 'tolerates',
): string {
  const why =
    decision.basis === 'released'
      ? 'the images have no architecture in common (placement.noCommonArchitecture: release)'
      : `not resolved: ${decision.unknown.join(', ')} (images.unresolvable: ${decision.basis})`;
  return `${verb} ${decision.architectures.join(', ') || 'no architecture, because no node reports one'}: ${why}`;
}

/**
 * Returns the tolerations in `present` of archaware's form for architectures that the pod should not run on; none for a guess or if
 * the decision follows the cluster. They come from an image that was changed in place, or from a placement before the image was
 * known. The API server lets nobody remove tolerations from a pod.
 */
export function staleUnder(
  decision: Decision,
  present: readonly JsonObject[],
  taint: { readonly key: string; readonly effect: string },
): Toleration[] {
  if (decision.kind !== 'place' || decision.followsCluster) return [];
  const { basis, architectures } = decision;
  if (basis !== 'images' && basis !== 'statement') return [];
  return present
    .flatMap((toleration) => asOurs(toleration, taint) ?? [])
    .filter(({ value }) => !architectures.includes(value));
}

/** Returns the reason for a decision as text. `os`: the pod's. */
export function decisionNote(decision: Decision, os: string, schedulable: readonly string[]): string {
  switch (decision.kind) {
    case 'wait':
      return decision.failed.map(unresolvableNote).join('; ') || `not known yet: ${decision.images.join(', ')}`;
    case 'hold':
      return heldNote(decision, os, schedulable);
    case 'place':
      return placeNote(decision, schedulable);
    default:
      return decision satisfies never;
  }
}

function placeNote(decision: Extract<Decision, { kind: 'place' }>, schedulable: readonly string[]): string {
  const set = decision.architectures.join(', ') || 'no architecture';
  switch (decision.basis) {
    case 'images':
      return `its images run on ${set}${withinText(schedulable)}`;
    case 'statement':
      return `its annotation ${ARCHITECTURES_ANNOTATION} says ${set}`;
    case 'cluster':
      return `its images set no limit; the cluster has ${set}`;
    case 'written':
      return decision.architectures.length === 0
        ? 'its images are not known; it has a node, so nothing is added'
        : `by what archaware wrote to it before, its images run on ${set}`;
    case 'open':
    case 'fallback':
    case 'released':
      return openNote(decision);
    default:
      return decision.basis satisfies never;
  }
}

/** Returns the reason for a skipped object as text. */
export function skipNote(reason: SkipReason, { tooLarge }: Partial<Pick<PodTemplate, 'tooLarge'>> = {}): string {
  return reason === 'too-large' && tooLarge !== undefined ? `it is ${tooLargeNote(tooLarge)}` : skipFacts(reason).text;
}

/** How many names of nodes or images a line shows before it says "and 3 more". */
const MOST_NAMES = 3;

/** Returns `a, b, c and 2 more`. */
export function few(names: readonly string[], separator = ', ', most = MOST_NAMES): string {
  const more = names.length - most;
  return names.slice(0, most).join(separator) + (more > 0 ? ` and ${more} more` : '');
}

/** A guess on `fallback` proves nothing, and what follows the cluster or was released does not come from the images. */
const SAYS: Readonly<Record<DecisionBasis, string | undefined>> = {
  images: 'its images run on',
  statement: `its annotation ${ARCHITECTURES_ANNOTATION} says`,
  written: 'by what archaware wrote to it before, its images run on',
  open: 'its known images run on',
  cluster: undefined,
  fallback: undefined,
  released: undefined,
};

/**
 * Returns why no node can run a pod that asks for other architectures than its images have: `requires kubernetes.io/arch=arm64 by
 * its nodeSelector, but its images run on amd64 only`; undefined if it can run, or if that is not known.
 */
export function contradictionOf(
  decision: Decision | { readonly kind: 'skip' },
  asked: Pick<Asked, 'text' | 'architectures'> | undefined,
  { schedulable }: Pick<Settings, 'schedulable'>,
): string | undefined {
  if (asked === undefined || decision.kind !== 'place') return undefined;
  const { architectures, basis, followsCluster } = decision;
  const said = SAYS[basis];
  if (said === undefined || followsCluster || architectures.length === 0) return undefined;
  if (architectures.some((name) => asked.architectures.includes(name))) return undefined;
  return `requires ${asked.text}, but ${said} ${architectures.join(', ')} only${withinText(schedulable)}`;
}
