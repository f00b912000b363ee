import { namespaceOf } from '../../kit/fairness/fair-queue.ts';
import type { Store } from '../../kube/watch/collection.ts';
import { isCutOff } from '../../placement/nodes/cut-off.ts';
import type { Node } from '../../placement/nodes/node.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import type { Want } from '../../placement/rollout/brake.ts';
import type { Settings } from '../../placement/settings.ts';
import type { RolloutTurn } from './rollout.ts';

/** A DaemonSet that nodes stay untainted for: why, and what to do about it. */
export type Holder = { readonly key: string; readonly uid: string; readonly why: string };

type Entry = {
  /** On which its images run; undefined: not known, so it may be any. */
  readonly architectures: readonly string[] | undefined;
  readonly why: Want;
  /** What the API server said; empty: nothing. */
  readonly answer: string;
};

/** The DaemonSets that lack tolerations, and why. */
export type Unserved = ReturnType<typeof createUnserved>;

type UnservedOptions = {
  readonly daemonSets: Store<DaemonSet>;
  readonly turn: Pick<RolloutTurn, 'stopsAll'>;
  readonly isSystem: (namespace: string) => boolean;
  readonly taints: () => Settings['taints'];
  /** Called when a DaemonSet no longer lacks its tolerations. */
  readonly onServed: () => void;
};

/** Creates an empty memory. */
export function createUnserved({ daemonSets, turn, isSystem, taints, onServed }: UnservedOptions) {
  const entries = new Map<string, Entry>();
  return {
    lacks: (key: string, entry: Entry): void => void entries.set(key, entry),
    /** The DaemonSet has its tolerations, needs none, or is left alone. */
    served(key: string): void {
      if (entries.delete(key)) onServed();
    },
    /** Returns the DaemonSets that a node must not be tainted for, with the reason for each. */
    holders(node: Node): Holder[] {
      const found = new Map<string, string>();
      for (const [key, entry] of entries) {
        const daemonSet = daemonSets.get(key);
        // What a tenant has in his namespace holds nobody up: the refused write is named there.
        if (daemonSet === undefined || !isSystem(namespaceOf(key))) continue;
        if (isCutOff(daemonSet, entry.architectures, node, taints())) found.set(key, unservedNote(entry));
      }
      for (const key of turn.stopsAll()) found.set(key, STOPS_ALL);
      return [...found].flatMap(([key, why]) => {
        const uid = daemonSets.get(key)?.uid;
        return uid === undefined ? [] : { key, uid, why };
      });
    },
  };
}

/** The reason for which a stopped DaemonSet holds the taints back. */
const STOPS_ALL = 'it is not back after archaware added tolerations to its template (Event RolloutStopped)';

/** Returns why a DaemonSet without its tolerations holds the taints back, and what to do. */
function unservedNote({ why, answer }: Entry): string {
  switch (why) {
    case 'refused':
      return `its template cannot get the tolerations; allow the account of archaware to write them, or add them to the source of the template: ${answer || 'the API server refuses them'}`;
    case 'contested':
      return 'another writer keeps removing the tolerations from its template: add them to the source of the template';
    case 'in-line':
      return 'its template waits for other DaemonSets to roll out';
    case 'failed':
      return 'its template could not be written yet';
    default:
      return why satisfies never;
  }
}
