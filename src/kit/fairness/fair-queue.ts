/** A queue of groups: first come, first served within a group, while the groups take turns. */
export type FairQueue<T> = {
  /** Adds an item at the end of its group. Returns a function that takes the item out again if it is still there. */
  add(group: string, item: T): () => void;
  /** Takes the next item from the group whose turn it is; undefined if the queue is empty. */
  take(): T | undefined;
  sizeOf(group: string): number;
  readonly size: number;
};

/** Creates an empty queue. Each operation takes constant time, however many items there are. */
export function createFairQueue<T>(): FairQueue<T> {
  type Entry = { readonly item: T };
  /**
   * The groups in the order of their turns; a group that had its turn goes to the end. No group in the map is empty.
   */
  const groups = new Map<string, Set<Entry>>();
  let size = 0;

  return {
    add(group, item) {
      const entries = groups.get(group) ?? new Set<Entry>();
      if (entries.size === 0) groups.set(group, entries);
      const entry = { item };
      entries.add(entry);
      size += 1;
      return () => {
        if (!entries.delete(entry)) return;
        size -= 1;
        if (entries.size === 0 && groups.get(group) === entries) groups.delete(group);
      };
    },
    take() {
      for (const [group, entries] of groups) {
        groups.delete(group);
        for (const entry of entries) {
          entries.delete(entry);
          size -= 1;
          if (entries.size > 0) groups.set(group, entries);
          return entry.item;
        }
      }
      return undefined;
    },
    sizeOf: (group) => groups.get(group)?.size ?? 0,
    get size() {
      return size;
    },
  };
}
