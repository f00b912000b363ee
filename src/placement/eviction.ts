import type { Decision, ImageSet } from './decide.ts';
import type { SkipReason } from './eligibility.ts';
import { type ImageAnswer, intersect, narrowingOf, onlySchedulable } from './images.ts';
import type { JsonObject } from './json.ts';
import { type Node, taintText } from './node.ts';
import type { Pod, PodImage } from './pod.ts';
import { describeSets } from './reasons.ts';
import type { Settings } from './settings.ts';
import { asOurs, tolerates } from './tolerations.ts';
import { whyNotBroughtBack } from './undo.ts';
import { writersOf, wroteTolerations } from './written.ts';

/** What shows that a pod is on a wrong node: what its images run on, or that a container died of it. */
export type WrongReason = 'platforms' | 'exec-format-error';

/** What is known of a pod's images, as far as nobody guessed. */
export type Known = {
  readonly images: readonly ImageSet[];
  /** Those of nodes that run all of them; undefined where an image is not known, or none narrows them. */
  readonly architectures: readonly string[] | undefined;
  /** Images that were never looked up until now: their answer is on the way. */
  readonly pending: readonly string[];
  /** Images of which nothing is known, or nothing that still holds. */
  readonly unknown: readonly string[];
};

/** A pod that is where it should not be. */
export type WrongPlace = {
  readonly reason: WrongReason;
  /** Whether it is certain that the node's architecture is outside of what its images run on. */
  readonly isOutside: boolean;
  readonly known: Known;
};

/**
 * What is known for certain of what a pod's images run on. Its author's own statement is no knowledge of images, and none
 * is asked then. `isStale`: what is known of an image could not be revalidated.
 */
export function whatIsKnown(
  pod: Pick<Pod, 'images' | 'os' | 'statement'>,
  settings: Pick<Settings, 'overrides' | 'compatible'>,
  namesOf: (image: string) => readonly string[],
  answerOf: (image: PodImage) => ImageAnswer,
  isStale: (image: PodImage) => boolean,
): Known {
  const sets: (readonly string[])[] = [];
  const images: ImageSet[] = [];
  const pending: string[] = [];
  const unknown: string[] = [];
  if (pod.statement !== undefined) return { images, architectures: undefined, pending, unknown };
  for (const image of pod.images) {
    const said = narrowingOf(image, pod.os, settings, namesOf(image.image), answerOf);
    if (said.kind === 'pending') pending.push(image.image);
    else if (said.kind === 'failed') unknown.push(image.image);
    else if (said.kind === 'set' && said.by === 'registry' && isStale(image)) unknown.push(image.image);
    else if (said.kind === 'set') {
      sets.push(said.architectures);
      images.push({ image: image.image, platforms: said.platforms });
    }
  }
  const certain = pending.length === 0 && unknown.length === 0;
  return { images, architectures: certain ? intersect(sets) : undefined, pending, unknown };
}

/**
 * Whether a bound pod is worth a look, by what was decided for it: nearly all are not. A decision of `released` sent it
 * anywhere on purpose, one that was a guess may be anywhere, and an author's statement says nothing of images.
 */
export function mayBeWrong(
  pod: Pick<Pod, 'startError' | 'statement'>,
  decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason } | undefined,
  architecture: string | undefined,
): boolean {
  if (pod.startError !== undefined) return true;
  if (architecture === undefined || pod.statement !== undefined) return false;
  if (decision?.kind === 'hold') return true;
  return decision?.kind === 'place' && decision.basis === 'images' && !decision.architectures.includes(architecture);
}

/** Whether a pod that is bound to a node of this architecture is in the wrong place, and what shows it. */
export function wrongPlace(pod: Pick<Pod, 'startError'>, architecture: string, known: Known): WrongPlace | undefined {
  const isOutside = known.architectures !== undefined && !known.architectures.includes(architecture);
  if (pod.startError !== undefined) return { reason: 'exec-format-error', isOutside, known };
  return isOutside ? { reason: 'platforms', isOutside, known } : undefined;
}

/** What only the whole pod tells, of its author and of us. */
export type Origin = {
  /** Whether its node was named when it was made, and not by the scheduler: then its template names it. */
  readonly namesNode: boolean;
  /** Whether we wrote its tolerations, so that those of our form are ours. */
  readonly toleratesByUs: boolean;
};

/** Reads it from a pod as the API server sent it. A binding is in nobody's `managedFields`. */
export function readOrigin(object: JsonObject): Origin {
  return { namesNode: writersOf(object, 'f:nodeName').length > 0, toleratesByUs: wroteTolerations(object) };
}

/**
 * Why a pod may not be evicted from a wrong node, in words for its Event; undefined: it may. It must have somebody who brings
 * it back, somewhere to go, and something that keeps it from coming back to a wrong node. `origin`: undefined before
 * the whole pod was read; then what is of our form counts as ours.
 */
export function whyNotEvicted(
  pod: Pick<Pod, 'owner' | 'tolerations'>,
  place: WrongPlace,
  node: Pick<Node, 'name' | 'taints'> & { readonly architecture: string },
  clusterArchitectures: readonly string[],
  settings: Pick<Settings, 'taints' | 'schedulable' | 'onWrongNode'>,
  origin: Origin | undefined,
): string | undefined {
  if (settings.onWrongNode === 'warn') return 'pods.onWrongNode is warn';
  const { architectures } = place.known;
  if (architectures === undefined) return 'it is not known for certain what its images run on';
  if (!place.isOutside) return `its images say that they run on ${node.architecture}, so it could come back here`;
  if (pod.owner?.kind === 'DaemonSet') return 'its DaemonSet would make another one here';
  const unreturning = whyNotBroughtBack(pod.owner);
  if (unreturning !== undefined) return unreturning;
  const { taints } = settings;
  if (!onlySchedulable(clusterArchitectures, settings).some((name) => architectures.includes(name))) {
    return 'no node of the cluster runs all of its images';
  }
  const keptOff = { key: taints.key, value: node.architecture, effect: 'NoSchedule' };
  const isKeptOff = (node.taints ?? []).some(
    ({ key, value, effect }) => key === keptOff.key && value === keptOff.value && effect === keptOff.effect,
  );
  if (!taints.manage || !isKeptOff)
    return `node ${node.name} has no taint ${taintText(keptOff)} that would keep it off`;
  const wrong = [node.architecture, ...clusterArchitectures].filter((name) => !architectures.includes(name));
  const tolerated = toleratedByAuthor(pod.tolerations ?? [], wrong, taints, origin?.toleratesByUs ?? true);
  if (tolerated !== undefined) return `its own tolerations let it onto nodes of ${tolerated}, so it could come back`;
  return origin?.namesNode ? 'its template names the node (spec.nodeName), so it would come back' : undefined;
}

/** The first of the architectures whose taint is tolerated by what we did not write. */
function toleratedByAuthor(
  tolerations: readonly JsonObject[],
  architectures: readonly string[],
  { key, effect }: Settings['taints'],
  oursAreOurs: boolean,
): string | undefined {
  const own = oursAreOurs ? tolerations.filter((entry) => asOurs(entry, { key, effect }) === undefined) : tolerations;
  return architectures.find((value) => own.some((toleration) => tolerates(toleration, { key, value, effect })));
}

/** What an operator reads of a pod on a wrong node: `outcome` says what became of it. */
export function wrongNodeNote(
  place: WrongPlace,
  startError: string | undefined,
  node: { readonly name: string; readonly architecture: string },
  outcome: string,
): string {
  const where = `node ${node.name} (${node.architecture})`;
  const what =
    place.reason === 'exec-format-error'
      ? `container ${startError} died with an exec format error on ${where}`
      : `bound to ${where}, which does not run all of its images`;
  const { images, unknown } = place.known;
  const sets = [describeSets(images), unknown.length > 0 ? `not known: ${unknown.join(', ')}` : ''].filter(Boolean);
  return [`${what}; ${outcome}`, ...sets].join('; ');
}
