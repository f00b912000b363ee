import type { Clock } from '../kit/clock.ts';

/** An object to look at again, in so many milliseconds; 0: now. */
export type Due = { readonly key: string; readonly inMs: number };

/** Which objects wait for which images, so that the end of a lookup brings exactly those back. */
export type Waiting = {
  /** Sets what an object waits for, as it was just decided; an empty list takes it out. */
  set(key: string, images: readonly string[]): void;
  /**
   * The lookup of an image has ended: the objects that wait for it. One that waits for many images comes back with the last
   * answer, and once a second until then: each decision looks at all of its images.
   */
  settled(image: string): readonly Due[];
};

/** An object that waits for no more images than these comes back with each of them. */
const FEW = 8;
const MANY_MS = 1_000;

type Entry = { readonly images: readonly string[]; readonly left: Set<string>; readonly at: number };

/** Creates an empty index. */
export function createWaiting({ monotonic }: Pick<Clock, 'monotonic'>): Waiting {
  const byImage = new Map<string, Set<string>>();
  const byKey = new Map<string, Entry>();

  function dueAt({ images, left, at }: Entry): number {
    return images.length <= FEW || left.size === 0 ? 0 : Math.max(0, at + MANY_MS - monotonic());
  }

  return {
    set(key, images) {
      for (const image of byKey.get(key)?.images ?? []) {
        const keys = byImage.get(image);
        keys?.delete(key);
        if (keys?.size === 0) byImage.delete(image);
      }
      if (images.length === 0) {
        byKey.delete(key);
        return;
      }
      byKey.set(key, { images, left: new Set(images), at: monotonic() });
      for (const image of images) {
        const keys = byImage.get(image) ?? new Set();
        keys.add(key);
        byImage.set(image, keys);
      }
    },
    settled(image) {
      const due: Due[] = [];
      for (const key of byImage.get(image) ?? []) {
        const entry = byKey.get(key);
        entry?.left.delete(image);
        if (entry !== undefined) due.push({ key, inMs: dueAt(entry) });
      }
      return due;
    },
  };
}
