import type { Clock } from '../../kit/clock.ts';
import type { Decision } from '../../placement/decide.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { startsAtLatestText, WAITS_FOR_LOOKUP } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';

/** Says how long pods wait for their images. */
type Outlooks = {
  /**
   * Returns the time at which a pod starts without an answer about its images, as text for its Events, or that it waits until a
   * lookup succeeds. Empty if the pod does not wait, has a node already, or if that is not known yet.
   */
  of(key: string, pod: Pick<Pod, 'nodeName'>, decision: Decision, settings: Settings): string;
  forget(key: string): void;
};

/** Two calculations of one time differ, because the two clocks are not read at once. */
const SAME_TIME_MS = 5_000;

/** Creates an empty memory of these times: a time must not change with each retry, or each retry would be a new Event. */
export function createOutlooks(clock: Pick<Clock, 'wall'>): Outlooks {
  const times = new Map<string, number>();

  function steady(key: string, atMs: number): number {
    const before = times.get(key);
    if (before !== undefined && Math.abs(before - atMs) <= SAME_TIME_MS) return before;
    times.set(key, atMs);
    return atMs;
  }

  return {
    of(key, { nodeName }, decision, settings) {
      if (decision.kind !== 'wait' || nodeName !== undefined || onlyObserves(settings)) return '';
      if (decision.givesUpInMs !== undefined) {
        return startsAtLatestText(steady(key, clock.wall() + decision.givesUpInMs));
      }
      return settings.unresolvable === 'wait' ? WAITS_FOR_LOOKUP : '';
    },
    forget: (key) => times.delete(key),
  };
}
