import type { Decision, FailedImage, ImageSet } from './decide.ts';
import type { JsonObject } from './json.ts';
import { asOurs, type Toleration } from './tolerations.ts';

/** The longest note of an Event, in bytes of UTF-8 (events.k8s.io/v1 refuses a longer one). */
export const NOTE_BYTES = 1024;

/** `nginx:1.27 (linux/amd64, linux/arm64); busybox (linux/s390x)`: each image with what was found for it. */
export function describeSets(images: readonly ImageSet[]): string {
  return images.map(({ image, platforms }) => `${image} (${platforms.join(', ') || 'none'})`).join('; ');
}

/** What an operator reads of a pod that is held because its images have no architecture in common. */
export function noCommonArchitectureNote(
  images: readonly ImageSet[],
  os: string,
  schedulable: readonly string[],
): string {
  const within = schedulable.length > 0 ? ` within architectures.schedulable (${schedulable.join(', ')})` : '';
  return `no architecture for ${os} is common to all images${within}: ${describeSets(images)}`;
}

/** What an operator reads of an image that could not be resolved. */
export function unresolvableNote({ image, code, message, registry }: FailedImage): string {
  return `image ${image} could not be resolved (${code}) at ${registry || 'no registry'}: ${message}`;
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
