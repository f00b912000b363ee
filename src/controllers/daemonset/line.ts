/** DaemonSets that wait for their turn to roll, by key (`namespace/name`). */
export type Line = {
  /** Adds a DaemonSet at the end of its namespace; one that waits already keeps its place. */
  add(key: string): void;
  has(key: string): boolean;
  /** Returns the DaemonSet that is first, which stays in the line. */
  first(): string | undefined;
  /** Takes a DaemonSet out because its turn has come: its namespace goes behind the others. */
  take(key: string): void;
  /** Takes a DaemonSet out that no longer waits. */
  delete(key: string): void;
};

/**
 * Creates an empty line. System namespaces come first. Namespaces take turns, so that one with hundreds of DaemonSets delays those
 * of another one by one turn each. `isSystem`: whether a namespace is a system namespace.
 */
export function createLine(isSystem: (namespace: string) => boolean): Line {
  /** The namespaces in the order of their turns, each with its DaemonSets in the order in which they came. None is empty. */
  const [system, others] = [new Map<string, Set<string>>(), new Map<string, Set<string>>()];

  function remove(key: string): void {
    const namespace = namespaceOf(key);
    for (const namespaces of [system, others]) {
      const keys = namespaces.get(namespace);
      keys?.delete(key);
      if (keys?.size === 0) namespaces.delete(namespace);
    }
  }

  const has = (key: string) => [system, others].some((each) => each.get(namespaceOf(key))?.has(key) === true);

  return {
    has,
    delete: remove,
    add(key) {
      if (has(key)) return;
      const namespace = namespaceOf(key);
      const namespaces = isSystem(namespace) ? system : others;
      namespaces.set(namespace, (namespaces.get(namespace) ?? new Set()).add(key));
    },
    first() {
      for (const namespaces of [system, others])
        for (const keys of namespaces.values()) for (const key of keys) return key;
      return undefined;
    },
    take(key) {
      remove(key);
      const namespace = namespaceOf(key);
      for (const namespaces of [system, others]) {
        const keys = namespaces.get(namespace);
        if (keys === undefined || !namespaces.delete(namespace)) continue;
        namespaces.set(namespace, keys);
      }
    },
  };
}

function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}
