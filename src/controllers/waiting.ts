/** Which objects wait for which images, so that the end of a look-up queues exactly those. */
export type Waiting = {
  /** Sets what an object waits for; an empty list takes it out. */
  set(key: string, images: readonly string[]): void;
  /** The objects that wait for an image. */
  keysFor(image: string): readonly string[];
};

/** Creates an empty index. */
export function createWaiting(): Waiting {
  const byImage = new Map<string, Set<string>>();
  const byKey = new Map<string, readonly string[]>();
  return {
    set(key, images) {
      for (const image of byKey.get(key) ?? []) {
        const keys = byImage.get(image);
        keys?.delete(key);
        if (keys?.size === 0) byImage.delete(image);
      }
      if (images.length === 0) {
        byKey.delete(key);
        return;
      }
      byKey.set(key, images);
      for (const image of images) {
        const keys = byImage.get(image) ?? new Set();
        keys.add(key);
        byImage.set(image, keys);
      }
    },
    keysFor: (image) => [...(byImage.get(image) ?? [])],
  };
}
