import type { Clock } from '../../kit/clock.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { createLine } from './line.ts';

/** Lets one DaemonSet at a time roll because of archaware: a mistake must not restart every daemon pod of a cluster at once. */
export type RolloutTurn = {
  /**
   * Whether this DaemonSet may be written now. If so, and if it will roll, it owns the turn from this moment on, so that no other
   * DaemonSet takes it while the write is under way. If not, it waits in the line: system namespaces first, then namespaces take
   * turns.
   */
  take(key: string, daemonSet: DaemonSet): boolean;
  /** Returns the turn because nothing was written. */
  giveBack(key: string): void;
  /** Takes a DaemonSet out of the line: it need not roll, or it cannot be decided now. */
  leave(key: string): void;
  /** Whether the DaemonSet waits in the line. */
  waits(key: string): boolean;
  /** Returns the DaemonSet that may take the turn now; undefined while another one rolls, and if none waits. */
  next(): string | undefined;
};

/** Whether no pod would be replaced. A pod on a node that the template does not tolerate still runs, and counts as misscheduled. */
function runsNowhere({ current, misscheduled }: DaemonSet): boolean {
  return current + misscheduled === 0;
}

/** The longest time that a DaemonSet waits for the one before it. */
const TURN_MS = 5 * 60_000;
/**
 * The time until the next DaemonSet rolls after one that had not rolled out before it was written. Nobody can say when such a
 * rollout ends, and its author can make it last for ever, so it is not waited for. But a dead node makes every DaemonSet of the
 * cluster such a one, and they must not all roll in the same second.
 */
const PAUSE_MS = 15_000;

type Turn = { readonly key: string; readonly generation: number; readonly at: number; readonly longestMs: number };

/** Creates the turn over the DaemonSets in the store. `isSystem`: whether a namespace is a system namespace. */
export function createRolloutTurn(
  daemonSets: Store<DaemonSet>,
  clock: Clock,
  isSystem: (namespace: string) => boolean,
): RolloutTurn {
  let turn: Turn | undefined;
  const line = createLine(isSystem);

  function over(): boolean {
    if (turn === undefined || clock.monotonic() - turn.at > turn.longestMs) return true;
    const rolling = daemonSets.get(turn.key);
    return rolling === undefined || (rolling.generation >= turn.generation && rolling.rolledOut);
  }

  /**
   * Finds a DaemonSet that may be rolling because of an earlier leader's write. This process cannot know that, and waits for it.
   */
  function begunBefore(key: string): Turn {
    for (const other of daemonSets.keys()) {
      const found = daemonSets.get(other);
      if (other === key || found === undefined || found.recorded === undefined) continue;
      if (found.rolledOut || found.updateStrategy === 'OnDelete' || runsNowhere(found)) continue;
      return { key: other, generation: found.generation, at: clock.monotonic(), longestMs: TURN_MS };
    }
    return free(key);
  }

  function next(): string | undefined {
    const first = line.first();
    if (first === undefined) return undefined;
    turn ??= begunBefore(first);
    return over() ? first : undefined;
  }

  return {
    take(key, daemonSet) {
      // archaware's change adds no disruption if no pod would be replaced, or if the DaemonSet is about to roll anyway for a
      // change that its controller has not seen yet. Its pods may depend on the change, so it does not wait.
      if (runsNowhere(daemonSet) || !daemonSet.observed || daemonSet.updateStrategy === 'OnDelete') {
        line.delete(key);
        return true;
      }
      const generation = daemonSet.generation + 1;
      if (turn?.key === key && !over()) {
        // A second write does not make the turn longer: its author could bring about one after the other.
        turn = { ...turn, generation };
        return true;
      }
      line.add(key);
      if (next() !== key) return false;
      line.take(key);
      turn = { key, generation, at: clock.monotonic(), longestMs: daemonSet.rolledOut ? TURN_MS : PAUSE_MS };
      return true;
    },
    giveBack(key) {
      // This DaemonSet is not rolling because of archaware, and an earlier leader's rollout was waited for already.
      if (turn?.key === key) turn = free(key);
    },
    leave: line.delete,
    waits: line.has,
    next,
  };
}

/** A turn that is over: the next DaemonSet may take it. */
function free(key: string): Turn {
  return { key, generation: 0, at: Number.NEGATIVE_INFINITY, longestMs: 0 };
}
