import { type Node, taintKinds } from '../../placement/nodes/node.ts';

/** Which taints, by `key:effect`, the nodes of the cluster carry; Kubernetes' own apart. */
export type LiveTaints = {
  /** Counts a node's taints in or out; true where one appeared in the cluster or went from it. */
  count(node: Node | undefined, step: 1 | -1): boolean;
  all(): ReadonlySet<string>;
};

/** Creates it, without a node. */
export function createLiveTaints(): LiveTaints {
  const counts = new Map<string, number>();
  return {
    count(node, step) {
      let changed = false;
      for (const name of node === undefined ? [] : taintKinds(node)) {
        const before = counts.get(name) ?? 0;
        if (before + step > 0) counts.set(name, before + step);
        else counts.delete(name);
        changed ||= before === 0 || before + step === 0;
      }
      return changed;
    },
    all: () => new Set(counts.keys()),
  };
}
