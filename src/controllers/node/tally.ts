import { type Node, taintKinds } from '../../placement/nodes/node.ts';

/** The taints (`key:effect`) that nodes of the cluster have, without Kubernetes' own. */
export type LiveTaints = {
  /** Adds or removes a node's taints. Returns whether a taint appeared in the cluster or disappeared from it. */
  count(node: Node | undefined, step: 1 | -1): boolean;
  all(): ReadonlySet<string>;
};

/** Creates an empty count. */
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
