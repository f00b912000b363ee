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

/** An object that waits for many images. `left`: those that were not looked up yet. */
type Many = { readonly images: readonly string[]; readonly left: Set<string>; readonly at: number };

/** Of an object with few images only the list is kept, which may be the list of every object of a big cluster. */
type Entry = readonly string[] | Many;

/** Creates an empty index. */
export function createWaiting({ monotonic }: Pick<Clock, 'monotonic'>): Waiting {
  const byImage = new Map<string, Set<string>>();
  const byKey = new Map<string, Entry>();

  function dueIn(entry: Entry): number {
    if (!('left' in entry) || entry.left.size === 0) return 0;
    return Math.max(0, entry.at + MANY_MS - monotonic());
  }

  return {
    set(key, images) {
      const before = byKey.get(key) ?? [];
      for (const image of 'left' in before ? before.images : before) {
        const keys = byImage.get(image);
        keys?.delete(key);
        if (keys?.size === 0) byImage.delete(image);
      }
      if (images.length === 0) {
        byKey.delete(key);
        return;
      }
      byKey.set(key, images.length > FEW ? { images, left: new Set(images), at: monotonic() } : images);
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
        if (entry === undefined) continue;
        if ('left' in entry) entry.left.delete(image);
        due.push({ key, inMs: dueIn(entry) });
      }
      return due;
    },
  };
}
