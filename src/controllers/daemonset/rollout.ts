import type { Clock } from '../../kit/clock.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';

/** One DaemonSet at a time rolls because of us: a mistake must not take every daemon of a cluster at once. */
export type RolloutTurn = {
  /**
   * Whether this DaemonSet may be written now; if so, and if it will roll, the turn is its own from this moment on, so that
   * nobody else takes it while the write is under way.
   */
  take(key: string, daemonSet: DaemonSet): boolean;
  /** Nothing was written: the turn goes back. */
  giveBack(key: string): void;
};

/** Whether no pod of it would be replaced: one on a node that it does not tolerate runs and counts as misscheduled. */
function runsNowhere({ desired, current, misscheduled }: DaemonSet): boolean {
  return desired + current + misscheduled === 0;
}

/** The next one waits no longer than this for the one before. */
const TURN_MS = 5 * 60_000;

/** Creates the turn over the DaemonSets as they are seen. */
export function createRolloutTurn(daemonSets: Store<DaemonSet>, clock: Clock): RolloutTurn {
  let turn: { key: string; generation: number; at: number } | undefined;

  function over(): boolean {
    if (turn === undefined || clock.monotonic() - turn.at > TURN_MS) return true;
    const rolling = daemonSets.get(turn.key);
    return rolling === undefined || (rolling.generation >= turn.generation && rolling.settled);
  }

  /** One that another leader's write may have begun to roll: this process cannot know, and waits for it as for its own. */
  function begunBefore(key: string): typeof turn {
    for (const [other, { recorded, settled, generation, updateStrategy }] of entries()) {
      if (other === key || recorded === undefined || settled || updateStrategy === 'OnDelete') continue;
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
      // With nothing to roll, or about to roll for a change that its controller has not seen yet, our change adds no
      // disruption, and its pods may depend on it.
      if (runsNowhere(daemonSet) || !daemonSet.observed || daemonSet.updateStrategy === 'OnDelete') return true;
      turn ??= begunBefore(key);
      if (turn !== undefined && turn.key !== key && !over()) return false;
      turn = { key, generation: daemonSet.generation + 1, at: clock.monotonic() };
      return true;
    },
    giveBack(key) {
      // Nothing is rolling because of it; what an earlier leader began was waited for once already.
      if (turn?.key === key) turn = { key, generation: 0, at: Number.NEGATIVE_INFINITY };
    },
  };
}
