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
export type Unserved = Map<string, UnservedEntry>;

type UnservedParts = {
  readonly turn: RolloutTurn;
  readonly unserved: Unserved;
  readonly settings: () => Pick<Settings, 'taints'>;
  /** Called when a DaemonSet no longer lacks its tolerations. */
  readonly onServed: () => void;
};

/** The DaemonSet has its tolerations, needs none, or is left alone. */
export function served({ unserved, onServed }: UnservedParts, key: string): void {
  if (unserved.delete(key)) onServed();
}

/** Returns the DaemonSets that a node must not be tainted for, with the reason for each. */
export function holdersOf({ turn, unserved, settings }: UnservedParts, node: Node): Holder[] {
  const { daemonSets, isSystem } = turn;
  const found = new Map<string, string>();
  for (const [key, entry] of unserved) {
    const daemonSet = daemonSets.get(key);
    // What a tenant has in his namespace holds nobody up: the refused write is named there.
    if (daemonSet === undefined || !isSystem(namespaceOf(key))) continue;
    if (isCutOff(daemonSet, entry.architectures, node, settings().taints)) found.set(key, unservedNote(entry));
  }
  for (const key of stopsAll(turn)) found.set(key, STOPS_ALL);
  return [...found].flatMap(([key, why]) => {
    const uid = daemonSets.get(key)?.uid;
    return uid === undefined ? [] : { key, uid, why };
  });
}
