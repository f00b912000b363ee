import type { Clock } from '../../kit/clock.ts';
import { objectAt, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../api-client.ts';
import { find } from '../read.ts';
import { pathOf, type WriteTarget } from '../writer.ts';

type DoubtOptions = {
  readonly client: Pick<ApiClient, 'request'>;
  readonly clock: Pick<Clock, 'delay'>;
  /** Returns the version of the object that the watch has; undefined: none. */
  readonly versionOf: (target: WriteTarget) => string | undefined;
  readonly onDead: () => void;
  readonly signal: AbortSignal;
};

/** After a conflict, a watch that works shows the other version in less time. */
const UNMOVED_MS = 5_000;

/**
 * Returns a function to call with the target of each write that conflicted. If its version has not moved here some seconds later, the
 * object is read once: a conflict can have other reasons, which must not look like a dead watch. One target at a time is enough, because
 * on a dead watch none moves.
 */
export function createDoubt({ client, clock, versionOf, onDead, signal }: DoubtOptions) {
  let isLooking = false;
  return async (target: WriteTarget): Promise<void> => {
    const version = versionOf(target);
    if (isLooking || version === undefined) return;
    isLooking = true;
    await clock.delay(UNMOVED_MS, signal);
    if (!signal.aborted && versionOf(target) === version) {
      // If that fails, the next conflict asks again.
      const object = await find(client, pathOf(target), signal).catch(() => ({
        metadata: { resourceVersion: version },
      }));
      const now = stringAt(objectAt(object ?? {}, 'metadata'), 'resourceVersion');
      if (now !== version && versionOf(target) === version) onDead();
    }
    isLooking = false;
  };
}
