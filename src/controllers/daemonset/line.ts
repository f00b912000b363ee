import { namespaceOf } from '../../kit/fairness/fair-queue.ts';

/**
 * Creates an empty line of DaemonSets that wait for their turn to roll, by key (`namespace/name`). System namespaces come first.
 * Namespaces take turns, so that one with hundreds of DaemonSets delays those of another one by one turn each. `isSystem`: whether a
 * namespace is a system namespace.
 */
export function createLine(isSystem: (namespace: string) => boolean) {
  /** The namespaces in the order of their turns, each with its DaemonSets in the order in which they came. None is empty. */
  const namespaces = new Map<string, Set<string>>();

  function remove(key: string): void {
    const namespace = namespaceOf(key);
    const keys = namespaces.get(namespace);
    keys?.delete(key);
    if (keys?.size === 0) namespaces.delete(namespace);
  }

  return {
    has: (key: string): boolean => namespaces.get(namespaceOf(key))?.has(key) === true,
    /** Takes a DaemonSet out that no longer waits. */
    delete: remove,
    /** Adds a DaemonSet at the end of its namespace; one that waits already keeps its place. */
    add(key: string): void {
      const namespace = namespaceOf(key);
      namespaces.set(namespace, (namespaces.get(namespace) ?? new Set()).add(key));
    },
    /** Returns the DaemonSet that is first, which stays in the line. Namespaces for which `isStopped` is true are passed over. */
    first(isStopped: (namespace: string) => boolean): string | undefined {
      const open = [...namespaces.keys()].filter((namespace) => !isStopped(namespace));
      const [first] = namespaces.get(open.find(isSystem) ?? open[0] ?? '') ?? [];
      return first;
    },
    /** Takes a DaemonSet out because its turn has come: its namespace goes behind the others. */
    take(key: string): void {
      remove(key);
      const namespace = namespaceOf(key);
      const keys = namespaces.get(namespace);
      if (keys === undefined) return;
      namespaces.delete(namespace);
      namespaces.set(namespace, keys);
    },
  };
}
