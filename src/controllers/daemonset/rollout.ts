import type { Clock } from '../../kit/clock.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';

/** Lets one DaemonSet at a time roll because of archaware: a mistake must not restart every daemon pod of a cluster at once. */
export type RolloutTurn = {
  /**
   * Whether this DaemonSet may be written now. If so, and if it will roll, it owns the turn from this moment on, so that no other
   * DaemonSet takes it while the write is under way.
   */
  take(key: string, daemonSet: DaemonSet): boolean;
  /** Returns the turn because nothing was written. */
  giveBack(key: string): void;
};

/** Whether no pod would be replaced. A pod on a node that the template does not tolerate still runs, and counts as misscheduled. */
function runsNowhere({ desired, current, misscheduled }: DaemonSet): boolean {
  return desired + current + misscheduled === 0;
}

/** The longest time that a DaemonSet waits for the one before it. */
const TURN_MS = 5 * 60_000;

/** Creates the turn over the DaemonSets in the store. */
export function createRolloutTurn(daemonSets: Store<DaemonSet>, clock: Clock): RolloutTurn {
  let turn: { key: string; generation: number; at: number } | undefined;

  function over(): boolean {
    if (turn === undefined || clock.monotonic() - turn.at > TURN_MS) return true;
    const rolling = daemonSets.get(turn.key);
    return rolling === undefined || (rolling.generation >= turn.generation && rolling.rolledOut);
  }

  /**
   * Finds a DaemonSet that may be rolling because of an earlier leader's write. This process cannot know that, and waits for it.
   */
  function begunBefore(key: string): typeof turn {
    for (const [other, { recorded, rolledOut, generation, updateStrategy }] of entries()) {
      if (other === key || recorded === undefined || rolledOut || updateStrategy === 'OnDelete') continue;
      return { key: other, generation, at: clock.monotonic() };
    }
    return { key, generation: 0, at: Number.NEGATIVE_INFINITY };
  }

  function* entries(): Generator<readonly [string, DaemonSet]> {
    for (const key of daemonSets.keys()) {
      const daemonSet = daemonSets.get(key);
      if (daemonSet !== undefined) yield [key, daemonSet];
    }
  }

  return {
    take(key, daemonSet) {
      // archaware's change adds no disruption if no pod would be replaced, or if the DaemonSet is about to roll anyway for a
      // change that its controller has not seen yet. Its pods may depend on the change, so it does not wait.
      if (runsNowhere(daemonSet) || !daemonSet.observed || daemonSet.updateStrategy === 'OnDelete') return true;
      turn ??= begunBefore(key);
      if (turn !== undefined && turn.key !== key && !over()) return false;
      turn = { key, generation: daemonSet.generation + 1, at: clock.monotonic() };
      return true;
    },
    giveBack(key) {
      // This DaemonSet is not rolling because of archaware, and an earlier leader's rollout was waited for already.
      if (turn?.key === key) turn = { key, generation: 0, at: Number.NEGATIVE_INFINITY };
    },
  };
}
