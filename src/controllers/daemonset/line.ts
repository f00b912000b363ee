import { namespaceOf } from '../../kit/fairness/fair-queue.ts';

/** So many others may overtake a DaemonSet that takes many pods down at once. Their rollouts show that pods are let in. */
const MOST_OVERTAKING = 20;

/**
 * Creates an empty line of DaemonSets that wait for their turn to roll, by key (`namespace/name`). System namespaces come first,
 * and among their DaemonSets and among the others those that take down the pod of one node at a time: if something refuses the new
 * pods, one node's worth is lost. Namespaces take turns, so that one with hundreds of DaemonSets delays those of another one by
 * one turn each. `isSystem`: whether a namespace is a system namespace.
 */
export function createLine(isSystem: (namespace: string) => boolean) {
  /** The namespaces in the order of their turns, each with its DaemonSets in the order in which they came. None is empty. */
  const [system, others] = [new Map<string, Set<string>>(), new Map<string, Set<string>>()];
  /** After how many turns each DaemonSet that takes many pods down counts like the others. */
  const patience = new Map<string, number>();
  let turns = 0;

  function remove(key: string): void {
    patience.delete(key);
    const namespace = namespaceOf(key);
    for (const namespaces of [system, others]) {
      const keys = namespaces.get(namespace);
      keys?.delete(key);
      if (keys?.size === 0) namespaces.delete(namespace);
    }
  }

  const has = (key: string) => [system, others].some((each) => each.get(namespaceOf(key))?.has(key) === true);
  const isGentle = (key: string) => (patience.get(key) ?? 0) <= turns;

  return {
    has,
    /** Takes a DaemonSet out that no longer waits. */
    delete: remove,
    /**
     * Adds a DaemonSet at the end of its namespace; one that waits already keeps its place. `takesMany`: its rollout takes the pods of
     * several nodes down at once.
     */
    add(key: string, takesMany: boolean): void {
      if (has(key)) return;
      if (takesMany) patience.set(key, turns + MOST_OVERTAKING);
      const namespace = namespaceOf(key);
      const namespaces = isSystem(namespace) ? system : others;
      namespaces.set(namespace, (namespaces.get(namespace) ?? new Set()).add(key));
    },
    /** Returns the DaemonSet that is first, which stays in the line. Namespaces for which `isStopped` is true are passed over. */
    first(isStopped: (namespace: string) => boolean): string | undefined {
      for (const namespaces of [system, others]) {
        let other: string | undefined;
        for (const [namespace, keys] of namespaces) {
          if (isStopped(namespace)) continue;
          for (const key of keys) {
            if (isGentle(key)) return key;
            other ??= key;
          }
        }
        if (other !== undefined) return other;
      }
      return undefined;
    },
    /** Takes a DaemonSet out because its turn has come: its namespace goes behind the others. */
    take(key: string): void {
      turns += 1;
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
