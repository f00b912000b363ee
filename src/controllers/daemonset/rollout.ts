import type { Clock } from '../../kit/clock.ts';
import { namespaceOf } from '../../kit/fairness/fair-queue.ts';
import type { Store } from '../../kube/watch/collection.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import {
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

/** Lets one DaemonSet at a time roll because of archaware: a mistake must not restart every daemon pod of a cluster at once. */
export type RolloutTurn = ReturnType<typeof createRolloutTurn>;

export type RolloutTurnOptions = {
  readonly daemonSets: Store<DaemonSet>;
  readonly clock: Pick<Clock, 'monotonic' | 'wall'>;
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

/** The line pauses if DaemonSets of so many namespaces in a row did not come back: a policy may refuse what archaware adds. */
const MOST_IN_A_ROW = 3;
const PAUSE_MS = 30 * 60_000;

/** Creates the turn over the DaemonSets in the store. */
export function createRolloutTurn({ daemonSets, clock, isSystem, unreadyNodes }: RolloutTurnOptions) {
  const rollouts = new Map<string, Rollout>();
  /** DaemonSets that were read, as long as the watch shows an earlier generation. */
  const read = new Map<string, DaemonSet>();
  /** The generation of each DaemonSet whose rollout is over, or that has none: what happens to its pods later is not archaware's doing. */
  const done = new Map<string, Pick<DaemonSet, 'uid' | 'generation'>>();
  const line = createLine(isSystem);
  const lookedAt = new Set<string>();
  const isSystemKey = (key: string) => isSystem(namespaceOf(key));
  /** When the turn was first asked for; undefined: not yet. */
  let since: number | undefined;
  /** The namespaces outside of the system whose DaemonSets did not come back, one after the other. */
  const inARow = new Set<string>();
  const counted = new WeakSet<Rollout>();
  let pausedUntil = Number.NEGATIVE_INFINITY;
  /** Since when records of namespaces outside of the system may hold the turn: all together for as long as one turn. */
  let adoptedSince = Number.NEGATIVE_INFINITY;

  function newest(key: string): DaemonSet | undefined {
    const [kept, later] = [daemonSets.get(key), read.get(key)];
    if (later !== undefined && kept?.uid === later.uid && kept.generation < later.generation) return later;
    read.delete(key);
    return kept;
  }

  function judged(key: string, rollout: Rollout, daemonSet: DaemonSet | undefined): RolloutVerdict {
    const unready = () => (daemonSet === undefined ? 0 : unreadyNodes(daemonSet));
    return judge(rollout, daemonSet, { now: clock.monotonic(), unready, isSystem: isSystemKey(key) });
  }

  function verdictOf(key: string): RolloutVerdict | undefined {
    let rollout = rollouts.get(key);
    const daemonSet = newest(key);
    if (rollout === undefined) return undefined;
    const isOurs = daemonSet?.generation === rollout.generation && daemonSet.observed;
    const progress = isOurs ? progressOf(daemonSet) : 0;
    if (progress > rollout.progress) {
      rollout = { ...rollout, progress, progressAt: clock.monotonic() };
      rollouts.set(key, rollout);
    }
    const verdict = judged(key, rollout, daemonSet);
    if (verdict.kind === 'over') {
      rollouts.delete(key);
      if (daemonSet !== undefined && daemonSet.generation <= rollout.generation) {
        done.set(key, { uid: daemonSet.uid, generation: daemonSet.generation });
      }
      if (verdict.isBack && !rollout.isAdopted) inARow.clear();
    }
    if (verdict.kind === 'stopped') count(key, rollout);
    return verdict;
  }

  /** Counts a DaemonSet that did not come back. A record proves nothing here: each tenant can write one. */
  function count(key: string, rollout: Rollout): void {
    if (isSystemKey(key) || rollout.isAdopted || rollout.isTakenBack || counted.has(rollout)) return;
    counted.add(rollout);
    inARow.add(namespaceOf(key));
    if (inARow.size < MOST_IN_A_ROW) return;
    inARow.clear();
    pausedUntil = clock.monotonic() + PAUSE_MS;
  }

  /** Takes up the rollout that the record of a DaemonSet names, whoever began it. */
  function adopt(key: string): void {
    const daemonSet = newest(key);
    if (daemonSet === undefined) return;
    const { uid, generation } = daemonSet;
    const isKnown = (known: Pick<Rollout, 'uid' | 'generation'> | undefined) =>
      known?.uid === uid && known.generation >= generation;
    if (isKnown(rollouts.get(key)) || isKnown(done.get(key))) return;
    const now = clock.monotonic();
    const rollout = recordedRollout(daemonSet, { now, wall: clock.wall() });
    if (rollout === undefined || judged(key, rollout, daemonSet).kind === 'over') {
      done.set(key, { uid, generation });
      return;
    }
    let { begunAt } = rollout;
    if (!isSystemKey(key)) {
      if (now - adoptedSince > PAUSE_MS) adoptedSince = now;
      begunAt = Math.min(begunAt, adoptedSince);
    }
    rollouts.set(key, { ...rollout, begunAt });
  }

  function adoptAll(): void {
    for (const key of daemonSets.keys()) adopt(key);
  }

  /** Takes over what an earlier leader began. Returns when this was. */
  function begin(): number {
    if (since !== undefined) return since;
    since = clock.monotonic();
    adoptAll();
    return since;
  }

  function standing(): { readonly key: string; readonly kind: 'rolling' | 'slow' | 'stopped' }[] {
    begin();
    return [...rollouts.keys()].flatMap((key) => {
      const kind = verdictOf(key)?.kind;
      return kind === undefined || kind === 'over' ? [] : { key, kind };
    });
  }

  const stopped = () => standing().flatMap(({ key, kind }) => (kind === 'stopped' ? key : []));
  const stopsAll = () => stopped().filter(isSystemKey);
  /** The namespaces that wait for a DaemonSet of their own, while others go on. */
  const stoppedNamespaces = () =>
    new Set(standing().flatMap(({ key, kind }) => (kind === 'rolling' ? [] : namespaceOf(key))));
  const isPaused = () => clock.monotonic() < pausedUntil;
  const isHeld = () => isPaused() || stopsAll().length > 0 || standing().some(({ kind }) => kind === 'rolling');

  /** Whether a DaemonSet of the system of which nothing is known yet may have to roll before this one. */
  function waitsForOthers(key: string): boolean {
    if (isSystemKey(key) || clock.monotonic() - begin() > ORDER_MS) return false;
    return [...daemonSets.keys()].some((other) => {
      const daemonSet = isSystemKey(other) && !lookedAt.has(other) ? daemonSets.get(other) : undefined;
      return daemonSet !== undefined && !runsNowhere(daemonSet);
    });
  }

  function next(): string | undefined {
    if (line.first(() => false) === undefined || isHeld()) return undefined;
    // The watch may have shown a rollout of an earlier leader a moment ago.
    adoptAll();
    if (isHeld()) return undefined;
    const held = stoppedNamespaces();
    const first = line.first((namespace) => held.has(namespace));
    return first === undefined || waitsForOthers(first) ? undefined : first;
  }

  function isUnprovenNow(key: string): boolean {
    const rollout = rollouts.get(key);
    return rollout !== undefined && isUnproven(rollout, newest(key), clock.monotonic());
  }

  return {
    /**
     * Whether this DaemonSet may be written now. If so, and if it will roll, it owns the turn from this moment on, so that no other
     * DaemonSet takes it while the write is under way. If not, it waits in the line ({@link createLine}).
     */
    take(key: string, daemonSet: DaemonSet): boolean {
      begin();
      adopt(key);
      lookedAt.add(key);
      // archaware's change adds no disruption if no pod would be replaced, or if the DaemonSet is about to roll anyway for a
      // change that its controller has not seen yet. Its pods may depend on the change, so it does not wait.
      const isAlone = runsNowhere(daemonSet) || daemonSet.updateStrategy === 'OnDelete';
      const isHeldUp = () => stoppedNamespaces().has(namespaceOf(key)) || stopsAll().length > 0;
      if (!rollouts.has(key) && (isAlone || (!daemonSet.observed && !isHeldUp()))) {
        line.delete(key);
        return true;
      }
      const generation = daemonSet.generation + 1;
      const isRolling = verdictOf(key)?.kind === 'rolling';
      const rollout = rollouts.get(key);
      if (rollout !== undefined && isRolling) {
        // A second write does not make the turn longer: its author could bring about one after the other.
        rollouts.set(key, { ...rollout, generation });
        return true;
      }
      line.add(key);
      if (next() !== key) return false;
      line.take(key);
      const now = clock.monotonic();
      rollouts.set(key, {
        ...{ uid: daemonSet.uid, generation, begunAt: now, progress: 0, progressAt: now },
        ...{ isAwaited: daemonSet.rolledOut, currentBefore: daemonSet.current, isTakenBack: false, isAdopted: false },
      });
      return true;
    },
    /** Undoes the last {@link RolloutTurn.take}, because nothing was written. Only the record says then whether it rolls. */
    giveBack(key: string): void {
      rollouts.delete(key);
      adopt(key);
    },
    /** Takes up what a DaemonSet is that was just read. The watch may not show it yet. */
    shows(key: string, daemonSet: DaemonSet | undefined): void {
      if (daemonSet !== undefined) read.set(key, daemonSet);
    },
    /**
     * Records that archaware takes its change back by a write that leads to this generation. Call it before the write: the watch may
     * show its result before the answer arrives. Returns what undoes this, for a write that was not carried out.
     */
    takesBack(key: string, generation: number): () => void {
      const rollout = rollouts.get(key);
      if (rollout === undefined) return () => undefined;
      rollouts.set(key, { ...rollout, generation, isTakenBack: true });
      return () => void rollouts.set(key, rollout);
    },
    /** Takes a DaemonSet out of the line: it need not roll, or it cannot be decided now. */
    leave: line.delete,
    /** Forgets a DaemonSet that is gone, or that archaware leaves alone. */
    forget(key: string): void {
      line.delete(key);
      for (const memory of [rollouts, read, done]) memory.delete(key);
      if (daemonSets.get(key) === undefined) lookedAt.delete(key);
    },
    /**
     * Records that a DaemonSet was looked at, so that others need not wait to see whether it comes first. Returns the DaemonSet whose
     * turn may have come by that.
     */
    seen(key: string): string | undefined {
      if (lookedAt.has(key)) return undefined;
      lookedAt.add(key);
      return next();
    },
    /** Whether the DaemonSet waits in the line, and not only for its own namespace. */
    waits: (key: string): boolean =>
      line.has(key) && (!stoppedNamespaces().has(namespaceOf(key)) || stopsAll().length > 0),
    /** Returns the DaemonSet that may take the turn now; undefined while another one rolls, and if none waits. */
    next,
    /** Returns how the rollout of this DaemonSet stands; undefined: archaware waits for none. */
    verdict(key: string): Exclude<RolloutVerdict, { kind: 'over' }> | undefined {
      begin();
      adopt(key);
      const verdict = verdictOf(key);
      return verdict?.kind === 'over' ? undefined : verdict;
    },
    /**
     * Whether archaware has begun a rollout of the DaemonSet, and nothing shows yet that its new pods are let in. That ends two minutes
     * after it counts as stopped: by then the change is taken back.
     */
    isUnproven: isUnprovenNow,
    /** Returns the keys of the DaemonSets for which {@link RolloutTurn.isUnproven} is true. */
    unproven: (): readonly string[] => [...rollouts.keys()].filter(isUnprovenNow),
    /** Returns the keys of the DaemonSets that are stopped. */
    stopped,
    /** Returns the keys of those of a system namespace: no further template is written, and no further node is tainted. */
    stopsAll,
    /** Whether the line pauses because DaemonSets of several other namespaces in a row did not come back. */
    isPaused,
  };
}
