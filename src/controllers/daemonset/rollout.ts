import type { Clock } from '../../kit/clock.ts';
import type { Store } from '../../kube/watch/store.ts';
import { type DaemonSet, readRecord } from '../../placement/objects/daemonset.ts';
import { rolloutOf } from '../../placement/objects/rollout-record.ts';
import {
  isUnproven,
  judge,
  type Late,
  progressOf,
  type Rollout,
  stoppingAll,
  type Verdict,
} from '../../placement/rollout/brake.ts';
import { createLine, namespaceOf } from './line.ts';

/** Lets one DaemonSet at a time roll because of archaware: a mistake must not restart every daemon pod of a cluster at once. */
export type RolloutTurn = {
  /**
   * Whether this DaemonSet may be written now. If so, and if it will roll, it owns the turn from this moment on, so that no other
   * DaemonSet takes it while the write is under way. If not, it waits in the line ({@link createLine}).
   */
  take(key: string, daemonSet: DaemonSet): boolean;
  /**
   * Undoes the last {@link RolloutTurn.take}, because nothing was written. `isSure`: false if no answer arrived. If the watch shows
   * later that it was written after all, the DaemonSet owns the turn again.
   */
  giveBack(key: string, isSure: boolean): void;
  /**
   * Records that archaware takes its change back by a write that leads to this generation. Call it before the write: the watch may
   * show its result before the answer arrives. Returns what undoes this, for a write that fails; `isSure` as for `giveBack`.
   */
  takesBack(key: string, generation: number): (isSure: boolean) => void;
  /** Takes a DaemonSet out of the line: it need not roll, or it cannot be decided now. */
  leave(key: string): void;
  /** Forgets a DaemonSet that is gone, or that archaware leaves alone. */
  forget(key: string): void;
  /**
   * Records that a DaemonSet was looked at, so that others need not wait to see whether it comes first. Returns the DaemonSet whose
   * turn may have come by that.
   */
  seen(key: string): string | undefined;
  /** Whether the DaemonSet waits in the line, and not only for its own namespace. */
  waits(key: string): boolean;
  /** Returns the DaemonSet that may take the turn now; undefined while another one rolls, and if none waits. */
  next(): string | undefined;
  /** Returns how the rollout of this DaemonSet stands; undefined: archaware waits for none. */
  verdict(key: string): Exclude<Verdict, { kind: 'over' }> | undefined;
  /**
   * Whether archaware has begun a rollout of the DaemonSet, and nothing shows yet that its new pods are let in. That ends two minutes
   * after it counts as stopped: by then the change is taken back.
   */
  isUnproven(key: string): boolean;
  /** Returns the keys of the DaemonSets for which {@link RolloutTurn.isUnproven} is true. */
  unproven(): readonly string[];
  /** Returns the keys of the DaemonSets that are stopped. */
  stopped(): readonly string[];
  /**
   * Returns the keys of those of them that stop everything ({@link stoppingAll}): no further template is written, and no further node
   * is tainted.
   */
  stopsAll(): readonly string[];
};

export type RolloutTurnOptions = {
  readonly daemonSets: Store<DaemonSet>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Whether a namespace is a system namespace. */
  readonly isSystem: (namespace: string) => boolean;
  /** Returns how many nodes that the DaemonSet wants are not ready. */
  readonly unreadyNodes: (daemonSet: DaemonSet) => number;
};

/** Whether no pod would be replaced. A pod on a node that the template does not tolerate still runs, and counts as misscheduled. */
function runsNowhere({ current, misscheduled }: DaemonSet): boolean {
  return current + misscheduled === 0;
}

/**
 * How long a DaemonSet waits after a start to see whether others come before it. They are decided within moments, unless their images
 * are not known yet.
 */
const ORDER_MS = 15_000;

/** Creates the turn over the DaemonSets in the store. */
export function createRolloutTurn({ daemonSets, clock, isSystem, unreadyNodes }: RolloutTurnOptions): RolloutTurn {
  const rollouts = new Map<string, Rollout>();
  /** What was known before a DaemonSet took the turn. */
  const earlier = new Map<string, Rollout | undefined>();
  /** The rollouts that a write has begun to which no answer arrived, if it was carried out. */
  const unanswered = new Map<string, Rollout>();
  const line = createLine(isSystem);
  const lookedAt = new Set<string>();
  /** When the turn was first asked for; undefined: not yet. */
  let since: number | undefined;

  const unreadyOf = (daemonSet: DaemonSet) => () => unreadyNodes(daemonSet);

  function verdictOf(key: string): Verdict | undefined {
    const rollout = rollouts.get(key);
    const daemonSet = daemonSets.get(key);
    if (rollout === undefined) return undefined;
    const now = clock.monotonic();
    const isOurs = daemonSet?.generation === rollout.generation && daemonSet.observed;
    const progress = isOurs ? progressOf(daemonSet) : 0;
    const known = progress > rollout.progress ? { ...rollout, progress, progressAt: now } : rollout;
    rollouts.set(key, known);
    const verdict = judge(known, daemonSet, now, daemonSet === undefined ? () => 0 : unreadyOf(daemonSet));
    if (verdict.kind === 'over') rollouts.delete(key);
    return verdict;
  }

  /** Takes over what an earlier leader began. This process cannot know when that was, so its time begins now. */
  function begin(): number {
    recall();
    if (since !== undefined) return since;
    since = clock.monotonic();
    for (const key of daemonSets.keys()) adopt(key, since);
    return since;
  }

  /** Takes up the rollouts of writes without an answer, once the watch shows them. The record says whose they are. */
  function recall(): void {
    for (const [key, rollout] of unanswered) {
      const daemonSet = daemonSets.get(key);
      const isSame = daemonSet?.uid === rollout.uid;
      if (isSame && daemonSet.generation < rollout.generation) continue;
      unanswered.delete(key);
      if (!isSame || daemonSet.generation > rollout.generation) continue;
      const isKnown = rollouts.get(key)?.generation === rollout.generation;
      if (!isKnown && recordedState(daemonSet) === stateOf(rollout)) rollouts.set(key, rollout);
    }
  }

  function adopt(key: string, now: number): void {
    const daemonSet = daemonSets.get(key);
    if (daemonSet?.recorded === undefined || daemonSet.updateStrategy === 'OnDelete') return;
    const state = recordedState(daemonSet);
    // One that had rolled out may have lost all of its pods since.
    const isDone = daemonSet.rolledOut || (state !== 'awaited' && runsNowhere(daemonSet));
    // Earlier versions did not record for which rollouts they waited.
    if (state === 'taken-back' || !isDone) rollouts.set(key, begun(daemonSet, daemonSet.generation, now, state));
  }

  function late(): Late[] {
    begin();
    return [...rollouts.keys()].flatMap((key): Late[] => {
      const verdict = verdictOf(key);
      const daemonSet = daemonSets.get(key);
      const rollout = rollouts.get(key);
      if (verdict === undefined || verdict.kind === 'over' || verdict.kind === 'rolling') return [];
      const namespace = namespaceOf(key);
      // Anybody can write the name of such a class. Only pods that ran with it show that the API server lets them have it.
      const ran = rollout?.isAwaited === true && rollout.currentBefore > 0;
      const hasSystemClass = ran && daemonSet?.template.priorityClassName?.startsWith('system-') === true;
      const isAdopted = rollout?.isAdopted === true;
      return [{ key, namespace, isSystemNamespace: isSystem(namespace), hasSystemClass, verdict, isAdopted }];
    });
  }

  /** Whether a DaemonSet of which nothing is known yet may have to roll before this one. */
  function waitsForOthers(key: string): boolean {
    if (clock.monotonic() - begin() > ORDER_MS) return false;
    const rank = rankOf(key);
    if (rank === 0) return false;
    for (const other of daemonSets.keys()) {
      if (lookedAt.has(other) || line.has(other) || rankOf(other) >= rank) continue;
      const daemonSet = daemonSets.get(other);
      if (daemonSet !== undefined && !runsNowhere(daemonSet)) return true;
    }
    return false;
  }

  function rankOf(key: string): number {
    return (isSystem(namespaceOf(key)) ? 0 : 2) + (daemonSets.get(key)?.takesMany === true ? 1 : 0);
  }

  function next(): string | undefined {
    const waiting = late();
    if (rollouts.size > waiting.length || stoppingAll(waiting).length > 0) return undefined;
    const stopped = new Set(waiting.map(({ namespace }) => namespace));
    const first = line.first((namespace) => stopped.has(namespace));
    return first === undefined || waitsForOthers(first) ? undefined : first;
  }

  /** Whether a DaemonSet of the same namespace holds up the others there. */
  const isNamespaceStopped = (key: string) => late().some(({ namespace }) => namespace === namespaceOf(key));
  const isLineStopped = () => stoppingAll(late()).length > 0;

  function isUnprovenNow(key: string): boolean {
    const rollout = rollouts.get(key);
    return rollout !== undefined && isUnproven(rollout, daemonSets.get(key), clock.monotonic());
  }

  return {
    take(key, daemonSet) {
      begin();
      earlier.delete(key);
      lookedAt.add(key);
      const isStopped = isNamespaceStopped(key) || isLineStopped();
      // archaware's change adds no disruption if no pod would be replaced, or if the DaemonSet is about to roll anyway for a
      // change that its controller has not seen yet. Its pods may depend on the change, so it does not wait.
      const isAlone = runsNowhere(daemonSet) || daemonSet.updateStrategy === 'OnDelete';
      const rollout = rollouts.get(key);
      if (rollout === undefined && (isAlone || (!daemonSet.observed && !isStopped))) {
        line.delete(key);
        return true;
      }
      const generation = daemonSet.generation + 1;
      if (rollout !== undefined && verdictOf(key)?.kind === 'rolling') {
        // A second write does not make the turn longer: its author could bring about one after the other.
        const known = rollouts.get(key) ?? rollout;
        earlier.set(key, known);
        rollouts.set(key, { ...known, generation });
        return true;
      }
      line.add(key, daemonSet.takesMany);
      if (next() !== key) return false;
      line.take(key);
      earlier.set(key, undefined);
      const state = daemonSet.rolledOut ? 'awaited' : undefined;
      rollouts.set(key, { ...begun(daemonSet, generation, clock.monotonic(), state), isAdopted: false });
      return true;
    },
    giveBack(key, isSure) {
      const begun = rollouts.get(key);
      if (begun === undefined || !earlier.has(key)) return;
      if (!isSure) unanswered.set(key, begun);
      // Without an earlier write, this DaemonSet is not rolling because of archaware.
      const before = earlier.get(key);
      earlier.delete(key);
      if (before === undefined) rollouts.delete(key);
      else rollouts.set(key, before);
    },
    takesBack(key, generation) {
      const rollout = rollouts.get(key);
      if (rollout === undefined) return () => undefined;
      const back = { ...rollout, generation, isTakenBack: true };
      rollouts.set(key, back);
      return (isSure) => {
        if (!isSure) unanswered.set(key, back);
        rollouts.set(key, rollout);
      };
    },
    leave: line.delete,
    forget(key) {
      line.delete(key);
      for (const memory of [rollouts, earlier, unanswered]) memory.delete(key);
      if (daemonSets.get(key) === undefined) lookedAt.delete(key);
    },
    seen(key) {
      if (lookedAt.has(key)) return undefined;
      lookedAt.add(key);
      return next();
    },
    waits: (key) => line.has(key) && (!isNamespaceStopped(key) || isLineStopped()),
    next,
    verdict(key) {
      begin();
      const verdict = verdictOf(key);
      return verdict?.kind === 'over' ? undefined : verdict;
    },
    isUnproven: isUnprovenNow,
    unproven: () => [...rollouts.keys()].filter(isUnprovenNow),
    stopped: () => late().flatMap(({ key, verdict }) => (verdict.kind === 'stopped' ? [key] : [])),
    stopsAll: () => stoppingAll(late()).flatMap(({ key, verdict }) => (verdict.kind === 'stopped' ? [key] : [])),
  };
}

/** Returns what the record says of the rollout to the present generation. */
function recordedState({ recorded, generation }: DaemonSet): ReturnType<typeof rolloutOf> {
  return rolloutOf(readRecord(recorded).basis?.rollout, generation);
}

/** Returns what the record says of a rollout if it was begun. */
function stateOf({ isAwaited, isTakenBack }: Rollout): ReturnType<typeof rolloutOf> {
  if (isTakenBack) return 'taken-back';
  return isAwaited ? 'awaited' : undefined;
}

/** Returns a rollout that begins now. `state`: what the record says of it, or will say. */
function begun(
  { uid, current }: DaemonSet,
  generation: number,
  now: number,
  state: ReturnType<typeof rolloutOf>,
): Rollout {
  return {
    uid,
    generation,
    begunAt: now,
    isAwaited: state === 'awaited',
    currentBefore: current,
    progress: 0,
    progressAt: now,
    isTakenBack: state === 'taken-back',
    isAdopted: true,
  };
}
