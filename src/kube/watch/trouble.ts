import type { Clock } from '../../kit/clock.ts';
import { messageOf } from '../../kit/errors.ts';
import { ApiError, isExpired } from '../errors.ts';

/** The request that fails at the moment. */
export type WatchAttempt = 'list' | 'watch';

export type TroubleOptions = {
  readonly clock: Clock;
  /** Called once for each kind of failure, until requests work again. */
  readonly onTrouble?: ((attempt: WatchAttempt, reason: string) => void) | undefined;
  /** Called when requests work again, but only if trouble was reported before. */
  readonly onWorking?: (() => void) | undefined;
};

/** A lost connection is reported only if the next attempt fails too: servers restart, and proxies close old connections. */
const WORTH_A_WARNING = 2;

/** Creates the record of whether the lists and watches of a collection work, and since when they do not; at first they do. */
export function createTrouble({ clock, onTrouble, onWorking }: TroubleOptions) {
  let since: number | undefined;
  let failures = 0;
  const reported = new Set<string>();

  return {
    /** Records a failed attempt. */
    failed(attempt: WatchAttempt, error: unknown): void {
      since ??= clock.monotonic();
      failures += 1;
      // A refusal comes from the server itself, so it is reported at once.
      const isRefused = error instanceof ApiError && !isExpired(error);
      if (!isRefused && failures < WORTH_A_WARNING) return;
      const kind = `${attempt} ${error instanceof ApiError ? error.status : ''}`;
      if (reported.has(kind)) return;
      reported.add(kind);
      onTrouble?.(attempt, messageOf(error));
    },
    works(): void {
      since = undefined;
      failures = 0;
      if (reported.size === 0) return;
      reported.clear();
      onWorking?.();
    },
    /** Since when nothing works, in milliseconds on the monotonic clock; undefined while it works. */
    brokenSince: (): number | undefined => since,
  };
}
