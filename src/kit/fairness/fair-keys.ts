/**
 * Waiting keys of the form `namespace/name`, each at most once. Within a namespace the first in is the first out;
 * namespaces take turns.
 */
export type FairKeys = {
  /** Adds a key; does nothing if the key already waits. */
  add(key: string): void;
  has(key: string): boolean;
  delete(key: string): void;
  /** Takes the next key; undefined if none waits. */
  take(): string | undefined;
  readonly size: number;
};

/** The keys of a namespace. `inOrder`: goes on where it was, as a new iterator would step over every key that was taken before. */
type Line = { readonly keys: Set<string>; readonly inOrder: Iterator<string, undefined> };

/** Creates an empty list. Keys without a namespace share one turn. The list takes the memory of a set: it may have every pod. */
export function createFairKeys(): FairKeys {
  /** The lines in the order of their turns; a namespace that had its turn goes to the end. No line is empty. */
  const lines = new Map<string, Line>();
  let size = 0;

  function remove(namespace: string, { keys }: Line, key: string): void {
    if (!keys.delete(key)) return;
    size -= 1;
    if (keys.size === 0) lines.delete(namespace);
  }

  return {
    add(key) {
      const namespace = namespaceOf(key);
      const line = lines.get(namespace) ?? createLine();
      if (line.keys.has(key)) return;
      if (line.keys.size === 0) lines.set(namespace, line);
      line.keys.add(key);
      size += 1;
    },
    has: (key) => lines.get(namespaceOf(key))?.keys.has(key) === true,
    delete(key) {
      const namespace = namespaceOf(key);
      const line = lines.get(namespace);
      if (line !== undefined) remove(namespace, line, key);
    },
    take() {
      for (const [namespace, line] of lines) {
        lines.delete(namespace);
        lines.set(namespace, line);
        const key = line.inOrder.next().value;
        if (key !== undefined) remove(namespace, line, key);
        return key;
      }
      return undefined;
    },
    get size() {
      return size;
    },
  };
}

function createLine(): Line {
  const keys = new Set<string>();
  return { keys, inOrder: keys.values() };
}

/** Returns what is before the slash of a key; empty without one. */
export function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}
