import type { Clock } from '../kit/clock.ts';

/** An object to reconcile again, in `inMs` milliseconds; 0: now. */
export type Due = { readonly key: string; readonly inMs: number };

/** The index of objects by the images that they wait for: the end of a lookup queues exactly these objects. */
export type Waiting = {
  /** Sets the images that an object waits for; an empty list removes the object. */
  set(key: string, images: readonly string[]): void;
  /**
   * Returns the objects that wait for an image whose lookup has ended. Each decision examines all images of an object, so an
   * object that waits for many images is queued at the last answer, and at most once a second before that.
   */
  lookupEnded(image: string): readonly Due[];
};

/** An object that waits for at most this many images is queued at each answer. */
const FEW = 8;
const MANY_MS = 1_000;

/** `left`: the images that were not looked up yet; undefined if there are few, because the object is then queued at each answer. */
type Entry = { readonly images: readonly string[]; readonly left: Set<string> | undefined; readonly at: number };

/** Creates an empty index. */
export function createWaiting({ monotonic }: Pick<Clock, 'monotonic'>): Waiting {
  const byImage = new Map<string, Set<string>>();
  const byKey = new Map<string, Entry>();

  function dueAt({ left, at }: Entry): number {
    return left === undefined || left.size === 0 ? 0 : Math.max(0, at + MANY_MS - monotonic());
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
      const left = images.length > FEW ? new Set(images) : undefined;
      byKey.set(key, { images, left, at: monotonic() });
      for (const image of images) {
        const keys = byImage.get(image) ?? new Set();
        keys.add(key);
        byImage.set(image, keys);
      }
    },
    lookupEnded(image) {
      const due: Due[] = [];
      for (const key of byImage.get(image) ?? []) {
        const entry = byKey.get(key);
        entry?.left?.delete(image);
        if (entry !== undefined) due.push({ key, inMs: dueAt(entry) });
      }
      return due;
    },
  };
}
