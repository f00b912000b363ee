import type { Clock } from '../kube/clock.ts';
import type { Store } from '../kube/store.ts';
import type { DaemonSet } from '../placement/daemonset.ts';

/** One DaemonSet at a time rolls because of us: a mistake must not take every daemon of a cluster at once. */
export type RolloutTurn = {
  /** Whether this DaemonSet may be written now. */
  free(key: string, daemonSet: DaemonSet): boolean;
  /** It was written and rolls, up to this generation. */
  taken(key: string, generation: number): void;
};

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

  return {
    free(key, daemonSet) {
      // Rolling anyway, or with nothing to roll: our change adds no disruption, and its pods may depend on it.
      if (!daemonSet.settled || daemonSet.desired === 0 || daemonSet.updateStrategy === 'OnDelete') return true;
      if (turn?.key === key || over()) return true;
      return false;
    },
    taken(key, generation) {
      turn = { key, generation, at: clock.monotonic() };
    },
  };
}
