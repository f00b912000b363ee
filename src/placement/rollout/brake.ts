import type { DaemonSet } from '../objects/daemonset.ts';

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
  /** Whether the change was taken back. */
  readonly isTakenBack: boolean;
  /** Whether an earlier leader began it. What is known of it then comes from the record, which its author can write. */
  readonly isAdopted: boolean;
};

/**
 * - `over`: the next DaemonSet may roll.
 * - `rolling`: it has the turn.
 * - `slow`: it goes on, but for so long that only its own namespace waits for it (for a system DaemonSet: everything).
 * - `stopped`: it is not back, and does not come further. `missing`: pods are not created, or are refused; else they do not get
 *   ready, which the author of the pods can bring about.
 */
export type Verdict =
  | { readonly kind: 'over' }
  | { readonly kind: 'rolling' }
  | { readonly kind: 'slow' }
  | { readonly kind: 'stopped'; readonly missing: boolean };

/** The time without progress after which a rollout counts as stopped. */
const TURN_MS = 5 * 60_000;
/**
 * The time until the next DaemonSet rolls after one that had not rolled out before it was written. Nobody can say when such a
 * rollout ends, so it is not waited for. But a dead node makes every DaemonSet of the cluster such a one, and they must not all roll
 * in the same second.
 */
const PAUSE_MS = 15_000;

/**
 * Nodes are not tainted before a change that was not let in is taken back, and the lost pods are there again: on tainted nodes they
 * could not be created. But nobody can hold the taints up by that for longer.
 */
const TAKING_BACK_MS = 2 * 60_000;

const OVER: Verdict = { kind: 'over' };

/**
 * Judges a rollout. `unready`: how many of the nodes that the DaemonSet wants are not ready; their pods say nothing about the change.
 */
export function judge(rollout: Rollout, daemonSet: DaemonSet | undefined, now: number, unready: () => number): Verdict {
  if (daemonSet === undefined || daemonSet.uid !== rollout.uid) return OVER;
  // The author has changed it since, so what happens to it is the author's rollout.
  if (daemonSet.generation > rollout.generation) return OVER;
  if (rollout.isTakenBack) return { kind: 'stopped', missing: true };
  const lasted = now - rollout.begunAt;
  const isSeen = daemonSet.generation === rollout.generation && daemonSet.observed;
  if (isSeen && isBack(daemonSet, unready)) return OVER;
  const isHarmless = !rollout.isAwaited && daemonSet.current >= rollout.currentBefore;
  if (isHarmless && lasted > PAUSE_MS) return OVER;
  if (now - rollout.progressAt > TURN_MS) return { kind: 'stopped', missing: isMissing(daemonSet) };
  return lasted > TURN_MS ? { kind: 'slow' } : { kind: 'rolling' };
}

function isBack(daemonSet: DaemonSet, unready: () => number): boolean {
  if (daemonSet.rolledOut) return true;
  const expected = daemonSet.desired - unready();
  return daemonSet.updated >= expected && daemonSet.available >= expected;
}

/** Whether daemon pods are not there although nothing else holds the rollout up: the API server does not let them in. */
function isMissing({ current, desired, updated, available }: DaemonSet): boolean {
  return current < desired || (updated < desired && available >= desired);
}

/** Returns how far a rollout has come. The author of the pods can raise it, but only as often as there are nodes. */
export function progressOf({ desired, updated, available }: DaemonSet): number {
  return updated + (updated >= desired ? available : 0);
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

/** A DaemonSet that waits too long, with what decides about whom it holds up. */
export type Late = {
  readonly key: string;
  readonly namespace: string;
  readonly isSystemNamespace: boolean;
  readonly hasSystemClass: boolean;
  readonly verdict: Extract<Verdict, { kind: 'slow' | 'stopped' }>;
  readonly isAdopted: boolean;
};

/**
 * Returns the DaemonSets that stop the whole line: no further template is written. A DaemonSet of a system namespace does. So do
 * DaemonSets whose pods are missing, if they are in two namespaces or have a `system-*` priority class. Pods that do not get ready,
 * and such a class alone, hold up only their own namespace: a tenant can bring both about.
 */
export function stoppingAll(late: readonly Late[]): readonly Late[] {
  const missing = late.filter(({ verdict, isAdopted }) => verdict.kind === 'stopped' && verdict.missing && !isAdopted);
  const inTwo = new Set(missing.map(({ namespace }) => namespace)).size > 1;
  return late.filter((one) => one.isSystemNamespace || (missing.includes(one) && (one.hasSystemClass || inTwo)));
}

/** Why a DaemonSet does not have its tolerations. */
export type Want =
  /** The API server, a policy or a webhook refuses the write, for a reason that is not the DaemonSet's own. */
  | 'refused'
  /** The write is refused because of what the DaemonSet is: too large, or not valid any more. */
  | 'unfit'
  /** Another writer keeps undoing the write. */
  | 'contested'
  /** It waits for its turn. */
  | 'in-line'
  /** The write did not get through. */
  | 'failed';

/** Whether nodes stay without the taint for a DaemonSet that lacks its tolerations. A tenant can bring about all but a refusal. */
export function holdsTaint(want: Want, isSystemNamespace: boolean): boolean {
  return want === 'refused' || isSystemNamespace;
}

/**
 * Returns whether the author of a DaemonSet can bring a refusal about alone: the object is too large for a request or for etcd, or a
 * field of it is not valid (`DaemonSet.apps "name" is invalid: …`). What the author wrote can be quoted in such a message, so only
 * its beginning counts. `isLarge`: the DaemonSet is so large that policies may give up on it. `isRecorded`: it has a record, which anybody
 * who may write the DaemonSet can forge, so that archaware's own guard policy refuses what archaware makes of it.
 */
export function isUnfit(
  { status, message }: { readonly status: number; readonly message: string },
  { isLarge, isRecorded }: { readonly isLarge: boolean; readonly isRecorded: boolean },
): boolean {
  if (status === 413) return true;
  if (
    isRecorded &&
    /^[^"]*: 4(?:03|22) daemonsets\.apps "[^"]*" is forbidden: ValidatingAdmissionPolicy 'archaware-guard-/.test(
      message,
    )
  ) {
    return true;
  }
  if (status === 422 && /^[^"]*: 422 DaemonSet\.apps "[^"]*" is invalid: /.test(message)) return true;
  if (status === 500 && isTooLarge(message)) return true;
  return isLarge && [400, 403, 422, 500].includes(status) && /denied (?:the )?request/.test(message);
}

/** Whether etcd refused an object for its size, or the connection to it did. */
function isTooLarge(message: string): boolean {
  const [unquoted = ''] = message.split('"', 1);
  const error = unquoted.indexOf(': 500 rpc error: ');
  return (
    unquoted.includes(': 500 etcdserver: request is too large') ||
    (error >= 0 && unquoted.includes('larger than max', error))
  );
}
