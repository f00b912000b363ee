import type { Clock } from '../../kit/clock.ts';
import { messageOf } from '../../kit/errors.ts';
import { ApiError, isExpired } from '../errors.ts';

/** What a collection cannot be kept in step by, at the moment. */
export type WatchAttempt = 'list' | 'watch';

export type TroubleOptions = {
  readonly clock: Clock;
  /** Once for each kind of failure, until it works again. */
  readonly onTrouble?: ((attempt: WatchAttempt, reason: string) => void) | undefined;
  /** It works again; only where trouble was reported before. */
  readonly onWorking?: (() => void) | undefined;
};

/** Whether lists and watches of a collection work, and since when they do not. */
export type WatchTrouble = {
  /** An attempt has failed. `since`: when it stopped to work, on the monotonic clock; default: now. */
  failed(attempt: WatchAttempt, error: unknown, since?: number): void;
  works(): void;
  /** Since when nothing works, on the monotonic clock in milliseconds; undefined while it works. */
  brokenSince(): number | undefined;
};

/** A lost connection is news only where the next attempt fails as well: servers restart, and proxies end what is old. */
const WORTH_A_WARNING = 2;

/** Creates the record of one collection; it begins as one that works. */
export function createTrouble({ clock, onTrouble, onWorking }: TroubleOptions): WatchTrouble {
  let since: number | undefined;
  let failures = 0;
  const reported = new Set<string>();

  return {
    failed(attempt, error, began = clock.monotonic()) {
      since ??= began;
      failures += 1;
      // A refusal is the server's own word.
      const isRefused = error instanceof ApiError && !isExpired(error);
      if (!isRefused && failures < WORTH_A_WARNING) return;
      const kind = `${attempt} ${error instanceof ApiError ? error.status : ''}`;
      if (reported.has(kind)) return;
      reported.add(kind);
      onTrouble?.(attempt, messageOf(error));
    },
    works() {
      since = undefined;
      failures = 0;
      if (reported.size === 0) return;
      reported.clear();
      onWorking?.();
    },
    brokenSince: () => since,
  };
}
