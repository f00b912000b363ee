import type { Clock } from '../../kit/clock.ts';
import { namespaceOf } from '../../kit/fairness/fair-queue.ts';
import type { Store } from '../../kube/watch/collection.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import {
  isMissing,
  isUnproven,
  judge,
  progressOf,
  type Rollout,
  type RolloutVerdict,
  recordedRollout,
} from '../../placement/rollout/brake.ts';

/**
 * Creates an empty line of DaemonSets that wait for their turn to roll, by key (`namespace/name`). System namespaces come first.
 * Namespaces take turns, so that one with hundreds of DaemonSets delays those of another one by one turn each. `isSystem`: whether a
 * namespace is a system namespace.
 */
export function createLine(isSystem: (namespace: string) => boolean) {
  /** The namespaces in the order of their turns, each with its DaemonSets in the order in which they came. None is empty. */
  const namespaces = new Map<string, Set<string>>();

  function remove(key: string): void {
    const namespace = namespaceOf(key);
    const keys = namespaces.get(namespace);
    keys?.delete(key);
    if (keys?.size === 0) namespaces.delete(namespace);
  }

  return {
    has: (key: string): boolean => namespaces.get(namespaceOf(key))?.has(key) === true,
    /** Takes a DaemonSet out that no longer waits. */
    delete: remove,
    /** Adds a DaemonSet at the end of its namespace; one that waits already keeps its place. */
    add(key: string): void {
      const namespace = namespaceOf(key);
      namespaces.set(namespace, (namespaces.get(namespace) ?? new Set()).add(key));
    },
    /** Returns the DaemonSet that is first, which stays in the line. Namespaces for which `isStopped` is true are passed over. */
    first(isStopped: (namespace: string) => boolean): string | undefined {
      const open = [...namespaces.keys()].filter((namespace) => !isStopped(namespace));
      const [first] = namespaces.get(open.find(isSystem) ?? open[0] ?? '') ?? [];
      return first;
    },
    /** Takes a DaemonSet out because its turn has come: its namespace goes behind the others. */
    take(key: string): void {
      remove(key);
      const namespace = namespaceOf(key);
      const keys = namespaces.get(namespace);
      if (keys === undefined) return;
      namespaces.delete(namespace);
      namespaces.set(namespace, keys);
    },
  };
}

type RolloutTurnOptions = {
  readonly daemonSets: Store<DaemonSet>;
  readonly clock: Pick<Clock, 'monotonic' | 'wall'>;
  readonly isSystem: (namespace: string) => boolean;
  /** Returns how many nodes that the DaemonSet wants are not ready. */
  readonly unreadyNodes: (daemonSet: DaemonSet) => number;
};

/** Lets one DaemonSet at a time roll because of archaware: a mistake must not restart every daemon pod of a cluster at once. */
export type RolloutTurn = RolloutTurnOptions & {
  readonly line: ReturnType<typeof createLine>;
  readonly rollouts: Map<string, Rollout>;
  /** DaemonSets that were read, as long as the watch shows an earlier generation. */
  readonly read: Map<string, DaemonSet>;
  /** The generation of each DaemonSet whose rollout is over, or that has none: what happens to its pods later is not archaware's doing. */
  readonly done: Map<string, Pick<DaemonSet, 'uid' | 'generation'>>;
  readonly lookedAt: Set<string>;
  /** DaemonSets that archaware leaves alone, although the record of an earlier rollout may still be on them. */
  readonly leftAlone: Set<string>;
  /** When the turn was first asked for; undefined: not yet. */
  since: number | undefined;
  /** The namespaces outside of the system whose DaemonSets did not come back, one after the other. */
  readonly inARow: Set<string>;
  readonly counted: WeakSet<Rollout>;
  pausedUntil: number;
  /** Since when records of namespaces outside of the system may hold the turn: all together for as long as one turn. */
  adoptedSince: number;
};

/**
 * How long a DaemonSet waits after a start to see whether others come before it. They are decided within moments, unless their images
 * are not known yet.
 */
const ORDER_MS = 15_000;

/** The line pauses if DaemonSets of so many namespaces in a row did not come back: a policy may refuse what archaware adds. */
const MOST_IN_A_ROW = 3;
const PAUSE_MS = 30 * 60_000;

/** Creates the turn over the DaemonSets in the store. */
export function createRolloutTurn(options: RolloutTurnOptions): RolloutTurn {
  return {
    ...options,
    ...{ line: createLine(options.isSystem), rollouts: new Map(), read: new Map(), done: new Map() },
    ...{ lookedAt: new Set(), leftAlone: new Set(), since: undefined, inARow: new Set(), counted: new WeakSet() },
    ...{ pausedUntil: Number.NEGATIVE_INFINITY, adoptedSince: Number.NEGATIVE_INFINITY },
  };
}

/**
 * Whether this DaemonSet may be written now. If so, and if it will roll, it owns the turn from this moment on, so that no other
 * DaemonSet takes it while the write is under way. If not, it waits in the line ({@link createLine}).
 */
export function takeTurn(turn: RolloutTurn, key: string, daemonSet: DaemonSet): boolean {
  const { line, rollouts } = turn;
  begin(turn);
  adopt(turn, key);
  turn.lookedAt.add(key);
  // archaware's change adds no disruption if no pod would be replaced, or if the DaemonSet is about to roll anyway for a
  // change that its controller has not seen yet. Its pods may depend on the change, so it does not wait.
  const isAlone = runsNowhere(daemonSet) || daemonSet.updateStrategy === 'OnDelete';
  const isHeldUp = () => stoppedNamespaces(turn).has(namespaceOf(key)) || stopsAll(turn).length > 0;
  if (!rollouts.has(key) && (isAlone || (!daemonSet.observed && !isHeldUp()))) {
    line.delete(key);
    return true;
  }
  const generation = daemonSet.generation + 1;
  const isRolling = verdictOf(turn, key)?.kind === 'rolling';
  const rollout = rollouts.get(key);
  if (rollout !== undefined && isRolling) {
    // A second write does not make the turn longer: its author could bring about one after the other.
    rollouts.set(key, { ...rollout, generation });
    return true;
  }
  line.add(key);
  if (nextToRoll(turn) !== key) return false;
  line.take(key);
  const now = turn.clock.monotonic();
  rollouts.set(key, {
    ...{ uid: daemonSet.uid, generation, begunAt: now, progress: 0, progressAt: now },
    ...{ isAwaited: daemonSet.rolledOut, currentBefore: daemonSet.current, isTakenBack: false, isAdopted: false },
  });
  return true;
}

/**
 * Undoes the last {@link takeTurn}, because nothing was written. Only the record says then whether it rolls. `read`: the DaemonSet as it
 * was just read, which the watch may not show yet.
 */
export function giveTurnBack(turn: RolloutTurn, key: string, read: DaemonSet | undefined): void {
  if (read !== undefined) turn.read.set(key, read);
  turn.rollouts.delete(key);
  adopt(turn, key);
}

/**
 * Records that archaware takes its change back by a write that leads to this generation. Call it before the write: the watch may
 * show its result before the answer arrives. Returns what undoes this, for a write that was not carried out.
 */
export function takesBack({ rollouts }: RolloutTurn, key: string, generation: number): () => void {
  const rollout = rollouts.get(key);
  if (rollout === undefined) return () => undefined;
  rollouts.set(key, { ...rollout, generation, isTakenBack: true });
  return () => void rollouts.set(key, rollout);
}

/** Forgets a DaemonSet that is gone, or that archaware leaves alone. */
export function forgetRollout(turn: RolloutTurn, key: string): void {
  const { line, rollouts, read, done, daemonSets, lookedAt, leftAlone } = turn;
  for (const memory of [line, rollouts, read, done]) memory.delete(key);
  if (daemonSets.get(key) !== undefined) leftAlone.add(key);
  else for (const memory of [lookedAt, leftAlone]) memory.delete(key);
}

/**
 * Records that a DaemonSet was looked at, so that others need not wait to see whether it comes first. Returns the DaemonSet whose
 * turn may have come by that.
 */
export function markSeen(turn: RolloutTurn, key: string): string | undefined {
  if (turn.lookedAt.has(key)) return undefined;
  turn.lookedAt.add(key);
  return nextToRoll(turn);
}

/** Whether the DaemonSet waits in the line, and not only for its own namespace. */
export function waitsInLine(turn: RolloutTurn, key: string): boolean {
  return turn.line.has(key) && (!stoppedNamespaces(turn).has(namespaceOf(key)) || stopsAll(turn).length > 0);
}

/** Returns the DaemonSet that may take the turn now; undefined while another one rolls, and if none waits. */
export function nextToRoll(turn: RolloutTurn): string | undefined {
  if (turn.line.first(() => false) === undefined || isHeld(turn)) return undefined;
  // The watch may have shown a rollout of an earlier leader a moment ago.
  adoptAll(turn);
  if (isHeld(turn)) return undefined;
  const held = stoppedNamespaces(turn);
  const first = turn.line.first((namespace) => held.has(namespace));
  return first === undefined || waitsForOthers(turn, first) ? undefined : first;
}

/** Whether a DaemonSet of the system of which nothing is known yet may have to roll before this one. */
function waitsForOthers(turn: RolloutTurn, key: string): boolean {
  if (isSystemKey(turn, key) || turn.clock.monotonic() - begin(turn) > ORDER_MS) return false;
  return [...turn.daemonSets.keys()].some((other) => {
    if (!isSystemKey(turn, other) || turn.lookedAt.has(other)) return false;
    const daemonSet = turn.daemonSets.get(other);
    return daemonSet !== undefined && !runsNowhere(daemonSet);
  });
}

/** Whether no pod would be replaced. A pod on a node that the template does not tolerate still runs, and counts as misscheduled. */
function runsNowhere({ current, misscheduled }: DaemonSet): boolean {
  return current + misscheduled === 0;
}

function isHeld(turn: RolloutTurn): boolean {
  return isPaused(turn) || stopsAll(turn).length > 0 || standing(turn).some(({ kind }) => kind === 'rolling');
}

/** Whether the line pauses because DaemonSets of several other namespaces in a row did not come back. */
export function isPaused({ clock, pausedUntil }: RolloutTurn): boolean {
  return clock.monotonic() < pausedUntil;
}

/** Returns the keys of the stopped DaemonSets of a system namespace: no further template is written, and no further node is tainted. */
export function stopsAll(turn: RolloutTurn): string[] {
  return stopped(turn).filter((key) => isSystemKey(turn, key));
}

/** Returns the keys of the DaemonSets that are stopped. */
export function stopped(turn: RolloutTurn): string[] {
  return standing(turn).flatMap(({ key, kind }) => (kind === 'stopped' ? key : []));
}

/** The namespaces that wait for a DaemonSet of their own, while others go on. */
function stoppedNamespaces(turn: RolloutTurn): Set<string> {
  return new Set(standing(turn).flatMap(({ key, kind }) => (kind === 'rolling' ? [] : namespaceOf(key))));
}

function standing(turn: RolloutTurn): { readonly key: string; readonly kind: 'rolling' | 'slow' | 'stopped' }[] {
  begin(turn);
  return [...turn.rollouts.keys()].flatMap((key) => {
    const kind = verdictOf(turn, key)?.kind;
    return kind === undefined || kind === 'over' ? [] : { key, kind };
  });
}

/** Returns how the rollout of this DaemonSet stands; undefined: archaware waits for none. */
export function verdictNow(turn: RolloutTurn, key: string): Exclude<RolloutVerdict, { kind: 'over' }> | undefined {
  begin(turn);
  adopt(turn, key);
  const verdict = verdictOf(turn, key);
  return verdict?.kind === 'over' ? undefined : verdict;
}

/**
 * Whether archaware has begun a rollout of the DaemonSet, and nothing shows yet that its new pods are let in. That ends two minutes
 * after it counts as stopped: by then the change is taken back.
 */
export function isUnprovenNow(turn: RolloutTurn, key: string): boolean {
  const rollout = turn.rollouts.get(key);
  return rollout !== undefined && isUnproven(rollout, newest(turn, key), turn.clock.monotonic());
}

/** Takes over what an earlier leader began. Returns when this was. */
function begin(turn: RolloutTurn): number {
  if (turn.since !== undefined) return turn.since;
  turn.since = turn.clock.monotonic();
  adoptAll(turn);
  return turn.since;
}

function adoptAll(turn: RolloutTurn): void {
  for (const key of turn.daemonSets.keys()) adopt(turn, key);
}

/** Takes up the rollout that the record of a DaemonSet names, also if another replica or somebody else began it. */
function adopt(turn: RolloutTurn, key: string): void {
  const { rollouts, done, leftAlone, clock } = turn;
  const daemonSet = newest(turn, key);
  if (daemonSet === undefined || leftAlone.has(key)) return;
  const { uid, generation } = daemonSet;
  const isKnown = (known: Pick<Rollout, 'uid' | 'generation'> | undefined) =>
    known?.uid === uid && known.generation >= generation;
  if (isKnown(rollouts.get(key)) || isKnown(done.get(key))) return;
  const now = clock.monotonic();
  const rollout = recordedRollout(daemonSet, { now, wall: clock.wall() });
  if (rollout === undefined || judged(turn, key, rollout, daemonSet).kind === 'over') {
    done.set(key, { uid, generation });
    return;
  }
  let { begunAt } = rollout;
  if (!isSystemKey(turn, key)) {
    if (now - turn.adoptedSince > PAUSE_MS) turn.adoptedSince = now;
    begunAt = Math.min(begunAt, turn.adoptedSince);
  }
  rollouts.set(key, { ...rollout, begunAt });
}

function verdictOf(turn: RolloutTurn, key: string): RolloutVerdict | undefined {
  const { rollouts } = turn;
  let rollout = rollouts.get(key);
  const daemonSet = newest(turn, key);
  if (rollout === undefined) return undefined;
  const isOurs = daemonSet?.generation === rollout.generation && daemonSet.observed;
  const now = turn.clock.monotonic();
  const missingSince = isOurs && isMissing(daemonSet) ? (rollout.missingSince ?? now) : undefined;
  const progress = isOurs ? progressOf(daemonSet) : 0;
  const isFurther = progress > rollout.progress;
  if (isFurther || missingSince !== rollout.missingSince) {
    const before = rollout;
    rollout = { ...before, missingSince, ...(isFurther ? { progress, progressAt: now } : {}) };
    rollouts.set(key, rollout);
    // The same standstill is counted once.
    if (!isFurther && turn.counted.has(before)) turn.counted.add(rollout);
  }
  const verdict = judged(turn, key, rollout, daemonSet);
  if (verdict.kind === 'over') {
    rollouts.delete(key);
    if (daemonSet !== undefined && daemonSet.generation <= rollout.generation) {
      turn.done.set(key, { uid: daemonSet.uid, generation: daemonSet.generation });
    }
    if (verdict.isBack && !rollout.isAdopted) turn.inARow.clear();
  }
  if (verdict.kind === 'stopped') count(turn, key, rollout);
  return verdict;
}

function judged(turn: RolloutTurn, key: string, rollout: Rollout, daemonSet: DaemonSet | undefined): RolloutVerdict {
  const unready = () => (daemonSet === undefined ? 0 : turn.unreadyNodes(daemonSet));
  return judge(rollout, daemonSet, { now: turn.clock.monotonic(), unready, isSystem: isSystemKey(turn, key) });
}

/** Counts a DaemonSet that did not come back. A record proves nothing here: each tenant can write one. */
function count(turn: RolloutTurn, key: string, rollout: Rollout): void {
  if (isSystemKey(turn, key) || rollout.isAdopted || rollout.isTakenBack || turn.counted.has(rollout)) return;
  turn.counted.add(rollout);
  turn.inARow.add(namespaceOf(key));
  if (turn.inARow.size < MOST_IN_A_ROW) return;
  turn.inARow.clear();
  turn.pausedUntil = turn.clock.monotonic() + PAUSE_MS;
}

/** Returns a DaemonSet as it was seen last: by the watch, or by a read that the watch does not show yet. */
function newest({ daemonSets, read }: RolloutTurn, key: string): DaemonSet | undefined {
  const [kept, later] = [daemonSets.get(key), read.get(key)];
  if (later !== undefined && kept?.uid === later.uid && kept.generation < later.generation) return later;
  read.delete(key);
  return kept;
}

function isSystemKey({ isSystem }: RolloutTurn, key: string): boolean {
  return isSystem(namespaceOf(key));
}
