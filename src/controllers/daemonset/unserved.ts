import { namespaceOf } from '../../kit/fairness/fair-queue.ts';
import { isCutOff } from '../../placement/nodes/cut-off.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { STOPS_ALL, unservedNote, type Want } from '../../placement/rollout/brake.ts';
import type { Settings } from '../../placement/settings.ts';
import { type RolloutTurn, stopsAll } from './rollout.ts';

/** A DaemonSet that nodes stay untainted for: why, and what to do about it. */
export type Holder = { readonly key: string; readonly uid: string; readonly why: string };

type UnservedEntry = {
  /** On which its images run; undefined: not known, so it may be any. */
  readonly architectures: readonly string[] | undefined;
  readonly why: Want;
  /** What the API server said; empty: nothing. */
  readonly answer: string;
};

/** The DaemonSets that lack tolerations, and why. */
export type Unserved = ReturnType<typeof createUnserved>;

type UnservedOptions = {
  readonly turn: RolloutTurn;
  readonly taints: () => Settings['taints'];
  /** Called when a DaemonSet no longer lacks its tolerations. */
  readonly onServed: () => void;
};

/** Creates an empty memory. */
export function createUnserved({ turn, taints, onServed }: UnservedOptions) {
  const { daemonSets, isSystem } = turn;
  const entries = new Map<string, UnservedEntry>();
  return {
    lacks: (key: string, entry: UnservedEntry): void => void entries.set(key, entry),
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
      for (const key of stopsAll(turn)) found.set(key, STOPS_ALL);
      return [...found].flatMap(([key, why]) => {
        const uid = daemonSets.get(key)?.uid;
        return uid === undefined ? [] : { key, uid, why };
      });
    },
  };
}
