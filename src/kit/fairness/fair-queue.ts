/** Items that wait, each at most once: first come, first served within a group, while the groups take turns. */
export type FairQueue<T> = {
  /**
   * Adds an item at the end of its group; does nothing if it waits there already. Returns a function that takes it out again if it is
   * still there.
   */
  add(group: string, item: T): () => void;
  has(group: string, item: T): boolean;
  delete(group: string, item: T): void;
  /** Takes the next item from the group whose turn it is; undefined if the queue is empty. */
  take(): T | undefined;
  sizeOf(group: string): number;
  readonly size: number;
};

/** Creates an empty queue. Each operation takes constant time, and an item the memory that it has in a set: there may be one for every pod. */
export function createFairQueue<T>(): FairQueue<T> {
  /** `inOrder`: goes on where it was, as a new iterator would step over every item that was taken before. */
  type Line = { readonly items: Set<T>; readonly inOrder: Iterator<T, undefined> };
  /** The lines of the groups in the order of their turns; a group that had its turn goes to the end. No line is empty. */
  const lines = new Map<string, Line>();
  let size = 0;

  function remove(group: string, { items }: Line, item: T): void {
    if (!items.delete(item)) return;
    size -= 1;
    if (items.size === 0) lines.delete(group);
  }

  function createLine(group: string): Line {
    const items = new Set<T>();
    const line = { items, inOrder: items.values() };
    lines.set(group, line);
    return line;
  }

  return {
    add(group, item) {
      const line = lines.get(group) ?? createLine(group);
      if (!line.items.has(item)) size += 1;
      line.items.add(item);
      return () => remove(group, line, item);
    },
    has: (group, item) => lines.get(group)?.items.has(item) === true,
    delete(group, item) {
      const line = lines.get(group);
      if (line !== undefined) remove(group, line, item);
    },
    take() {
      for (const [group, line] of lines) {
        lines.delete(group);
        lines.set(group, line);
        const next = line.inOrder.next();
        if (!next.done) remove(group, line, next.value);
        return next.value;
      }
      return undefined;
    },
    sizeOf: (group) => lines.get(group)?.items.size ?? 0,
    get size() {
      return size;
    },
  };
}

/** Returns what is before the slash of a key; empty without one. */
export function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}
