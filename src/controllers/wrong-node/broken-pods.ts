import type { Pod } from '../../placement/objects/pod.ts';

/** Creates an empty index of bound pods with a broken container, by node. There are few of them, and it avoids scans of all pods. */
export function createBrokenPods() {
  const nodeOf = new Map<string, string>();
  const byNode = new Map<string, Set<string>>();

  function remove(key: string, node: string): void {
    nodeOf.delete(key);
    const keys = byNode.get(node);
    keys?.delete(key);
    if (keys?.size === 0) byNode.delete(node);
  }

  return {
    /** Updates the index after a pod changed, or is gone (undefined). */
    changed(key: string, pod: Pick<Pod, 'broken' | 'nodeName'> | undefined): void {
      const before = nodeOf.get(key);
      const now = pod?.broken === undefined ? undefined : pod.nodeName;
      if (before === now) return;
      if (before !== undefined) remove(key, before);
      if (now === undefined) return;
      nodeOf.set(key, now);
      const keys = byNode.get(now) ?? new Set();
      byNode.set(now, keys.add(key));
    },
    /** Returns the broken pods on one node. */
    on: (node: string): Iterable<string> => byNode.get(node) ?? [],
    keys: (): Iterable<string> => nodeOf.keys(),
  };
}
