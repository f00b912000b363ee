import { weightOf } from '../../kit/fairness/weight.ts';

/*
 * The author of a pod decides how large it is, up to what etcd takes (1.5 MB), and every replica keeps every pod. So an object that
 * is too large is not served, and of what it says nothing is kept (docs/decisions/051-what-objects-occupy.md).
 */

/** The most bytes of memory that the images, labels, selectors and tolerations of an object take together. */
const MOST_BYTES = 16 * 1024;

/** Returns about how many bytes of memory these parts of an object take if that is too many, else undefined. */
export function bytesTooMany(parts: readonly unknown[]): number | undefined {
  const bytes = parts.reduce((sum: number, part) => sum + weightOf(part), 0);
  return bytes > MOST_BYTES ? bytes : undefined;
}

/** Says that an object is too large; `bytes`: what {@link bytesTooMany} returned. */
export function tooLargeNote(bytes: number): string {
  const what = 'its names of images, labels, selectors and tolerations count together';
  return `too large to be served: ${bytes} bytes, at most ${MOST_BYTES / 1024} KiB (${what})`;
}
