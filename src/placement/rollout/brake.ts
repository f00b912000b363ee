import type { DaemonSet } from '../objects/daemonset.ts';
import { readRecord, rolloutOf } from '../objects/template-record.ts';

/** A rollout that archaware began by a write to a template. */
export type Rollout = {
  readonly uid: string;
  /** The generation that the write led to. */
  readonly generation: number;
  /** When it began, in milliseconds of a clock that never goes back. */
  readonly begunAt: number;
  /** Whether the DaemonSet had rolled out before the write. If not, its author can keep it in that state for ever. */
  readonly isAwaited: boolean;
  /** How many nodes ran a daemon pod before the write. */
  readonly currentBefore: number;
  /** How far it has come, and since when it has not come further. */
  readonly progress: number;
  readonly progressAt: number;
  /** Since when daemon pods are seen to be missing. */
  readonly missingSince?: number | undefined;
  /** Whether the change was taken back. */
  readonly isTakenBack: boolean;
  /** Whether it was found in a record, which the author of the DaemonSet can write. */
  readonly isAdopted: boolean;
};

/**
 * - `over`: the next DaemonSet may roll. `isBack`: all of its pods have the change.
 * - `rolling`: it has the turn.
 * - `slow`: it goes on, but for so long that only its own namespace waits for it. A DaemonSet of the system never is.
 * - `stopped`: it is not back, and does not come further. `missing`: pods are not created, or are refused; else they do not get
 *   ready, which tolerations cannot bring about.
 */
export type RolloutVerdict =
  | { readonly kind: 'over'; readonly isBack: boolean }
  | { readonly kind: 'rolling' }
  | { readonly kind: 'slow' }
  | { readonly kind: 'stopped'; readonly missing: boolean };

/** The time without progress after which a rollout counts as stopped. */
const TURN_MS = 5 * 60_000;
/** For so long a new leader looks at a rollout before it judges: clocks may differ, and a pod may just be replaced. */
const LOOK_MS = 30_000;
/** An unfinished rollout that is older may as well have lost pods since: its time begins anew. */
const OLD_MS = 30 * 60_000;
/**
 * The time until the next DaemonSet rolls after one that had not rolled out before it was written. Nobody can say when such a rollout ends,
 * so it is not waited for. But a dead node makes every DaemonSet of the cluster such a one, and they must not all roll in the same second.
 */
const PAUSE_MS = 15_000;

/**
 * Nodes are not tainted before a change that was not let in is taken back, and the lost pods are there again: on tainted nodes they
 * could not be created. But nobody can hold the taints up by that for longer.
 */
const TAKING_BACK_MS = 2 * 60_000;

const OVER: RolloutVerdict = { kind: 'over', isBack: false };

/** The present time, by a clock that never goes back and by the wall clock. */
type Times = { readonly now: number; readonly wall: number };

/**
 * Returns the rollout that the record of a DaemonSet names and that may still go on; undefined: there is none. It began when archaware
 * last wrote to the DaemonSet, and came further at the earliest when its status last changed; the API server has noted both.
 */
export function recordedRollout(daemonSet: DaemonSet, { now, wall }: Times): Rollout | undefined {
  const { uid, generation, entry, current, observed } = daemonSet;
  const state = rolloutOf(readRecord(daemonSet.recorded).basis?.rollout, generation);
  if (state === undefined || daemonSet.updateStrategy === 'OnDelete') return undefined;
  const ago = (time = wall) => Math.max(0, wall - time);
  const age = ago(entry?.at);
  const begunAt = age > OLD_MS ? now : now - age;
  const progress = observed ? progressOf(daemonSet) : 0;
  const progressAt = daemonSet.updated === 0 ? begunAt : Math.max(begunAt, now - ago(entry?.statusAt));
  return {
    ...{ uid, generation, begunAt, currentBefore: current, progress },
    isAwaited: state === 'awaited',
    progressAt: Math.max(progressAt, now - TURN_MS + LOOK_MS),
    isTakenBack: state === 'taken-back',
    isAdopted: true,
  };
}

/** Judges a rollout. `unready`: how many of the nodes that the DaemonSet wants are not ready; their pods say nothing about the change. */
export function judge(
  rollout: Rollout,
  daemonSet: DaemonSet | undefined,
  { now, unready, isSystem }: { readonly now: number; readonly unready: () => number; readonly isSystem: boolean },
): RolloutVerdict {
  if (daemonSet === undefined || daemonSet.uid !== rollout.uid) return OVER;
  // The author has changed it since, so what happens to it is the author's rollout.
  if (daemonSet.generation > rollout.generation) return OVER;
  if (rollout.isTakenBack) return { kind: 'stopped', missing: true };
  const lasted = now - rollout.begunAt;
  const isSeen = daemonSet.generation === rollout.generation && daemonSet.observed;
  if (isSeen && isBack(daemonSet, unready)) return { kind: 'over', isBack: true };
  const isHarmless = !rollout.isAwaited && daemonSet.current >= rollout.currentBefore;
  if (isHarmless && lasted > PAUSE_MS) return OVER;
  // No answer arrived to the write, and it was not carried out.
  if (daemonSet.generation < rollout.generation && lasted > TURN_MS) return OVER;
  // A stuck pod that somebody deletes is missing as well, for a moment.
  const missing = isMissing(daemonSet) && now - (rollout.missingSince ?? rollout.begunAt) >= LOOK_MS;
  if (now - rollout.progressAt > TURN_MS) return { kind: 'stopped', missing };
  return isSystem || lasted <= TURN_MS ? { kind: 'rolling' } : { kind: 'slow' };
}

function isBack(daemonSet: DaemonSet, unready: () => number): boolean {
  if (daemonSet.rolledOut) return true;
  const expected = daemonSet.desired - unready();
  return daemonSet.updated >= expected && daemonSet.available >= expected;
}

/** Whether daemon pods are not there although nothing else holds the rollout up: the API server does not let them in. */
export function isMissing({ current, desired, updated, available }: DaemonSet): boolean {
  return current < desired || (updated < desired && available >= desired);
}

/** Returns how far a rollout has come. The author of the pods can raise it, but only a few times for each node. */
export function progressOf({ updated, available }: DaemonSet): number {
  return 2 * updated + available;
}

/**
 * Whether nothing shows yet that the API server lets pods with the change in; or, once it was taken back, whether the pods that were lost
 * are not there again.
 */
export function isUnproven(
  { generation, isAwaited, isTakenBack, begunAt }: Rollout,
  daemonSet: DaemonSet | undefined,
  now: number,
): boolean {
  if (!isAwaited || now - begunAt > TURN_MS + TAKING_BACK_MS) return false;
  if (daemonSet === undefined || daemonSet.generation > generation) return false;
  const isSeen = daemonSet.generation === generation && daemonSet.observed;
  if (isTakenBack) return !isSeen || !daemonSet.rolledOut;
  return !isSeen || (daemonSet.updated === 0 && daemonSet.desired > 0);
}

/** Why a DaemonSet does not have its tolerations. */
export type Want =
  /** The API server, a policy or a webhook refuses the write. */
  | 'refused'
  /** Another writer keeps undoing the write. */
  | 'contested'
  /** It waits for its turn. */
  | 'in-line'
  /** The write did not get through. */
  | 'failed';

/** Returns the note of the Event `RolloutStopped`. */
export function stoppedNote(
  { desired, current, updated, available }: DaemonSet,
  state: Readonly<Record<'isMissing' | 'isTakenBack' | 'stopsAll' | 'isPaused', boolean>>,
): string {
  const { isMissing, isTakenBack, stopsAll, isPaused } = state;
  const what = `no progress for 5 minutes after archaware added tolerations to its template: ${updated} of ${desired} pods are updated, ${available} available, ${desired - current} missing`;
  const result = stopsAll
    ? 'archaware changes no other DaemonSet and taints no node until this one is back'
    : `archaware changes no other DaemonSet of this namespace until this one is back${isPaused ? ', and none at all for up to 30 minutes, because those of several namespaces did not come back' : ''}; nodes get the taint nevertheless, and pods there that lack the toleration do not come back once they end`;
  const cause = isMissing
    ? 'look for FailedCreate in its Events; a policy may refuse pods with the toleration'
    : 'look at why its pods do not get ready';
  if (!isTakenBack) return `${what}; ${result}; ${cause}`;
  return `the API server let no pod in with the tolerations that archaware added to its template, so archaware has taken them back: ${result}; allow the tolerations, then run kubectl rollout restart; or label the DaemonSet archaware.dev/ignore=true, if it may lose its pods on nodes with the taint`;
}

/** The reason for which a stopped DaemonSet holds the taints back. */
export const STOPS_ALL = 'it is not back after archaware added tolerations to its template (Event RolloutStopped)';

/** Returns why a DaemonSet without its tolerations holds the taints back, and what to do. */
export function unservedNote({ why, answer }: { readonly why: Want; readonly answer: string }): string {
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
