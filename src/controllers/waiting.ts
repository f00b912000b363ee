import type { Clock } from '../kit/clock.ts';
import { namespaceOf } from '../kit/fairness/fair-queue.ts';
import { createLedger } from '../kit/fairness/ledger.ts';

/** An object to reconcile again, in `inMs` milliseconds; 0: now. */
export type Due = { readonly key: string; readonly inMs: number };

/** An object that waits for at most this many images is queued at each answer. */
const FEW = 8;
const MANY_MS = 1_000;

/** The interval at which an object is looked at again for which there is no room in the index, in milliseconds. */
export const NO_ROOM_AGAIN_MS = 10_000;

/** The most bytes of the index: of one namespace, of all, and of each namespace although the others have taken all. */
const LIMITS = { perGroup: 2 * 1024 * 1024, inAll: 12 * 1024 * 1024, always: 64 * 1024 } as const;
/** Bytes of an entry of the index. Names of ordinary images are in memory anyway. */
const ENTRY = 64;
const ORDINARY = 128;

/** An object that waits for many images. `left`: those that were not looked up yet. */
type Many = { readonly images: readonly string[]; readonly left: Set<string>; readonly at: number };

/** Of an object with few images only the list is kept, which may be the list of every object of a big cluster. */
type WaitingEntry = readonly string[] | Many;

/** Creates an empty index of objects by the images that they wait for: the end of a lookup queues exactly these objects. */
export function createWaiting({ monotonic }: Pick<Clock, 'monotonic'>) {
  const byImage = new Map<string, Set<string>>();
  const byKey = new Map<string, WaitingEntry>();
  const ledger = createLedger(LIMITS);

  function dueIn(entry: WaitingEntry): number {
    if (!('left' in entry) || entry.left.size === 0) return 0;
    return Math.max(0, entry.at + MANY_MS - monotonic());
  }

  function remove(key: string): void {
    const before = byKey.get(key);
    if (before === undefined) return;
    ledger.free(key);
    byKey.delete(key);
    for (const image of 'left' in before ? before.images : before) {
      const keys = byImage.get(image);
      keys?.delete(key);
      if (keys?.size === 0) byImage.delete(image);
    }
  }

  return {
    /**
     * Sets the images that an object waits for; an empty list removes the object. False if there is no room for the names of its
     * images: then nothing queues the object, and it must be looked at again after a while.
     */
    set(key: string, images: readonly string[]): boolean {
      remove(key);
      if (images.length === 0) return true;
      const bytes = images.reduce((sum, { length }) => sum + ENTRY + Math.max(0, length - ORDINARY), 0);
      if (!ledger.book(key, namespaceOf(key), bytes)) return false;
      byKey.set(key, images.length > FEW ? { images, left: new Set(images), at: monotonic() } : images);
      for (const image of images) {
        const keys = byImage.get(image) ?? new Set();
        keys.add(key);
        byImage.set(image, keys);
      }
      return true;
    },
    /**
     * Returns the objects that wait for an image whose lookup has ended. Each decision examines all images of an object, so an
     * object that waits for many images is queued at the last answer, and at most once a second before that.
     */
    lookupEnded(image: string): readonly Due[] {
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
