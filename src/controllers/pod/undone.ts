import type { Clock } from '../../kit/clock.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import type { Toleration } from '../../placement/patch/tolerations.ts';
import type { Announcer } from '../announce.ts';
import { createContention } from '../contention.ts';
import type { PlacementState } from '../placement-state.ts';
import { hasTolerations } from './basis.ts';
import { regardingPod } from './release.ts';

/**
 * Notices when tolerations that were written to a pod are not there: another webhook removed them, from the same write or later.
 */
export type Undone = {
  /** Returns the milliseconds to wait before `wanted` is written again; 0: write. */
  check(key: string, pod: Pod, state: PlacementState | undefined, wanted: readonly Toleration[]): number;
  forget(key: string): void;
  /** Counts the pods that are left alone now. */
  count(): number;
};

/** Creates an empty memory. It writes the Event `WriteContested` when this happens repeatedly. */
export function createUndone({ announcer, clock }: { announcer: Announcer; clock: Clock }): Undone {
  const contention = createContention(clock);
  return {
    check(key, pod, state, wanted) {
      if (state?.wrote === undefined || state.uid !== pod.uid || hasTolerations(pod, state.wrote)) return 0;
      const intent = `${pod.uid} ${JSON.stringify(wanted)}`;
      const { waitMs, began } = contention.check(key, intent);
      if (waitMs === 0) contention.wrote(key, intent);
      if (began) {
        announcer.report(key, {
          regarding: regardingPod(pod),
          type: 'Warning',
          reason: 'WriteContested',
          action: 'Placing',
          note: "another webhook or controller removes archaware's tolerations from this pod: configure it to keep them",
        });
      }
      return waitMs;
    },
    forget: contention.forget,
    count: contention.count,
  };
}
