/**
 * Creates an empty count of the names (of taints, of architectures) that `namesOf` returns for a node or a witness. One change costs the same
 * in a cluster of any size.
 */
export function createTally<T>(namesOf: (item: T) => readonly string[]) {
  const counts = new Map<string, number>();
  return {
    /** Adds or removes an item. Returns whether a name appeared in the cluster or disappeared from it. */
    count(item: T | undefined, step: 1 | -1): boolean {
      let changed = false;
      for (const name of item === undefined ? [] : namesOf(item)) {
        const before = counts.get(name) ?? 0;
        if (before + step > 0) counts.set(name, before + step);
        else counts.delete(name);
        changed ||= before === 0 || before + step === 0;
      }
      return changed;
    },
    all: (): ReadonlySet<string> => new Set(counts.keys()),
  };
}
