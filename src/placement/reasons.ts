import { ARCHITECTURES_ANNOTATION, IGNORE_LABEL } from '../names.ts';
import type { Decision, FailedImage, ImageSet } from './decide.ts';
import type { SkipReason } from './eligibility.ts';
import { TOO_MANY_IMAGES } from './images.ts';
import type { JsonObject } from './json.ts';
import { isWebAssembly } from './platform.ts';
import { asOurs, type Toleration } from './tolerations.ts';
import { few } from './ways.ts';

/** The longest note of an Event, in bytes of UTF-8 (events.k8s.io/v1 refuses a longer one). */
export const NOTE_BYTES = 1024;

/** `nginx:1.27 (linux/amd64, linux/arm64); volume data: model:1 (linux/s390x)`: each image with what was found for it. */
export function describeSets(images: readonly ImageSet[]): string {
  return images.map((each) => `${imageText(each)} (${each.platforms.join(', ') || 'none'})`).join('; ');
}

/** An image as people read it: `volume data: model:1` for one of a volume. */
export function imageText({ image, volume }: Pick<ImageSet, 'image' | 'volume'>): string {
  return volume === undefined ? image : `volume ${volume}: ${image}`;
}

/** What an operator reads of a pod that is held because its images have no architecture in common. */
export function noCommonArchitectureNote(
  images: readonly ImageSet[],
  os: string,
  schedulable: readonly string[],
): string {
  return `no architecture for ${os} is common to all images${withinText(schedulable)}: ${describeHeld(images)}`;
}

/** The images of a pod that have nothing in common, and which of them lack a RuntimeClass. */
export function describeHeld(images: readonly ImageSet[]): string {
  const wasm = webAssemblyAmong(images);
  const missing =
    wasm.length === 0 ? '' : `WebAssembly without a RuntimeClass (set spec.runtimeClassName): ${few(wasm)}; `;
  return missing + describeSets(images);
}

/** Those of the images that narrowed a set to nothing, as they are WebAssembly and their pod names no RuntimeClass. */
export function webAssemblyAmong(images: readonly ImageSet[]): string[] {
  return images.flatMap(({ image, volume, platforms }) => {
    const isContainers = volume === undefined && image !== ARCHITECTURES_ANNOTATION;
    return isContainers && isWebAssembly(platforms.map((platform) => platform.split('/')[1] ?? '')) ? image : [];
  });
}

/** ` within architectures.schedulable (amd64)`: what narrowed a set from outside; empty where nothing does. */
export function withinText(schedulable: readonly string[]): string {
  return schedulable.length > 0 ? ` within architectures.schedulable (${schedulable.join(', ')})` : '';
}

/** What an operator reads of an image that could not be resolved. */
export function unresolvableNote({ image, volume, code, message, registry }: FailedImage): string {
  if (code === TOO_MANY_IMAGES) return message;
  return `image ${image}${volume === undefined ? '' : ` of volume ${volume}`} could not be resolved (${code}) at ${registry || 'no registry'}: ${message}`;
}

/** What an operator reads of a pod that was placed without knowing all of its images. */
export function openNote(decision: Extract<Decision, { kind: 'place' }>): string {
  const why =
    decision.basis === 'released'
      ? 'the images have no architecture in common (placement.noCommonArchitecture: release)'
      : `not resolved: ${decision.unknown.join(', ')} (images.unresolvable: ${decision.basis})`;
  return `tolerates ${decision.architectures.join(', ') || 'no architecture, as no node has one'}: ${why}`;
}

/**
 * Tolerations of our form for architectures outside the set: of an image that was changed in place, or of a placement
 * made before the image was known. They cannot be taken from a pod.
 */
export function staleTolerations(
  present: readonly JsonObject[],
  architectures: readonly string[],
  taint: { readonly key: string; readonly effect: string },
): Toleration[] {
  return present.flatMap((toleration) => {
    const ours = asOurs(toleration, taint);
    return ours !== undefined && !architectures.includes(ours.value) ? [ours] : [];
  });
}

/** Those of ours among `present` that a decision no longer wants; none where it is a guess, or follows the cluster. */
export function staleUnder(
  decision: Decision,
  present: readonly JsonObject[],
  taint: { readonly key: string; readonly effect: string },
): Toleration[] {
  if (decision.kind !== 'place' || decision.followsCluster) return [];
  if (decision.basis !== 'images' && decision.basis !== 'statement') return [];
  return staleTolerations(present, decision.architectures, taint);
}

/** Why a decision is what it is, for people. `os`: of the pod. */
export function decisionNote(decision: Decision, os: string, schedulable: readonly string[]): string {
  switch (decision.kind) {
    case 'wait':
      return decision.failed.map(unresolvableNote).join('; ') || `not known yet: ${decision.images.join(', ')}`;
    case 'hold':
      return noCommonArchitectureNote(decision.images, os, schedulable);
    case 'place':
      return placeNote(decision);
    default:
      return decision satisfies never;
  }
}

function placeNote(decision: Extract<Decision, { kind: 'place' }>): string {
  const set = decision.architectures.join(', ') || 'no architecture';
  switch (decision.basis) {
    case 'images':
      return `its images run on ${set}`;
    case 'statement':
      return `its annotation ${ARCHITECTURES_ANNOTATION} says ${set}`;
    case 'cluster':
      return `none of its images says anything; the cluster has ${set}`;
    case 'written':
      return `archaware placed it before, on ${set}; that stands`;
    case 'open':
    case 'fallback':
    case 'released':
      return openNote(decision);
    default:
      return decision.basis satisfies never;
  }
}

/** Why something is left alone, for people. */
export function skipNote(reason: SkipReason): string {
  return SKIPPED[reason];
}

const SKIPPED: Readonly<Record<SkipReason, string>> = {
  terminal: 'it has finished',
  deleting: 'it is being deleted',
  mirror: 'it mirrors a static pod of its kubelet, to which nothing can be written',
  'daemon-pod': 'it is bound, and the template of its DaemonSet is what is decided on',
  ignored: `it is labelled ${IGNORE_LABEL}=true`,
  'namespace-ignored': `its namespace is labelled ${IGNORE_LABEL}=true`,
  'namespace-excluded': 'pods.excludeNamespaces names its namespace',
  'namespace-not-selected': 'pods.namespaceSelector does not match its namespace',
  'daemonsets-ignored': 'pods.daemonSets is ignore',
};

/** Control characters and half characters as escapes, then cut to `max` bytes of UTF-8: for text from outside, in logs, Events and tables. */
export function printable(text: string, max: number): string {
  const escaped = text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
  if (Buffer.byteLength(escaped) <= max) return escaped;
  const cut = Buffer.from(escaped)
    .subarray(0, max - 3)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
  return `${cut}…`;
}
