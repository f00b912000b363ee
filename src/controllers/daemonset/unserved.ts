import { namespaceOf } from '../../kit/fairness/fair-queue.ts';
import type { Store } from '../../kube/watch/store.ts';
import { isCutOff } from '../../placement/nodes/cut-off.ts';
import type { Node } from '../../placement/nodes/node.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import type { Want } from '../../placement/rollout/brake.ts';
import type { Settings } from '../../placement/settings.ts';

type Entry = {
  /** On which its images run; undefined: not known, so it may be any. */
  readonly architectures: readonly string[] | undefined;
  readonly why: Want;
  /** What the API server said; empty: nothing. */
  readonly answer: string;
};

/** The DaemonSets that lack tolerations, and why. */
export type Unserved = ReturnType<typeof createUnserved>;

export type UnservedOptions = {
  readonly daemonSets: Store<DaemonSet>;
  readonly isSystem: (namespace: string) => boolean;
  readonly taints: () => Settings['taints'];
  /** Called when a DaemonSet no longer lacks its tolerations. */
  readonly onServed: () => void;
};

/** Creates an empty memory. */
export function createUnserved({ daemonSets, isSystem, taints, onServed }: UnservedOptions) {
  const entries = new Map<string, Entry>();
  return {
    lacks: (key: string, entry: Entry): void => void entries.set(key, entry),
    /** The DaemonSet has its tolerations, needs none, or is left alone. */
    served(key: string): void {
      if (entries.delete(key)) onServed();
    },
    get: (key: string): Entry | undefined => entries.get(key),
    /** Returns the keys of the DaemonSets for which a node stays without the taint. */
    holders(node: Node): string[] {
      const found: string[] = [];
      for (const [key, { architectures }] of entries) {
        const daemonSet = daemonSets.get(key);
        // What a tenant has in his namespace holds nobody up: the refused write is named there.
        if (daemonSet === undefined || !isSystem(namespaceOf(key))) continue;
        if (isCutOff(daemonSet, architectures, node, taints())) found.push(key);
      }
      return found;
    },
  };
}
