import type { Node } from '../../placement/nodes/node.ts';

/**
 * Creates an empty count of the names (of taints, of architectures) that `namesOf` returns for a node. One change costs the same
 * in a cluster of any size.
 */
export function createTally(namesOf: (node: Node) => readonly string[]) {
  const counts = new Map<string, number>();
  return {
    /** Adds or removes a node. Returns whether a name appeared in the cluster or disappeared from it. */
    count(node: Node | undefined, step: 1 | -1): boolean {
      let changed = false;
      for (const name of node === undefined ? [] : namesOf(node)) {
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
