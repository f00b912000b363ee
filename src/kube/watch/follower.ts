import { backoff, type Clock } from '../../kit/clock.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { ApiClient } from '../api-client.ts';
import { ApiError, isExpired, isFromTheFuture } from '../errors.ts';
import { versionNow } from '../read.ts';
import { createTrouble, type TroubleOptions } from './trouble.ts';
import { readEvent, watchOnce } from './watch-once.ts';

type FollowerOptions = TroubleOptions & {
  readonly client: ApiClient;
  /** The collection to follow; a query may select a part of it. */
  readonly path: string;
  /** Takes each object that is created or changed from now on. Nothing is kept of it. */
  readonly onObject: (object: JsonObject) => void;
  readonly clock: Clock;
};

const WATCH_SECONDS = 300;
/** A server need not send anything while nothing happens, so only a watch that outlives its own end counts as dead. */
const DEAD_MS = WATCH_SECONDS * 1_000 + 30_000;
/** A watch that ends sooner counts as failed. */
const SHORT_MS = 1_000;
const RETRY_MS = { base: 1_000, cap: 60_000 } as const;
/** A right that is missing is not granted within seconds. */
const REFUSED_MS = 5 * 60_000;
/** A longer line is not read. An Event has about 1 KB. */
const LONGEST_LINE = 64 * 1024;

/**
 * Follows a collection without keeping it, until the signal aborts: what happened before, and what happens while a watch is broken,
 * is not seen. Never throws: what cannot be followed is reported and tried again.
 */
export async function follow(options: FollowerOptions, signal: AbortSignal): Promise<void> {
  const { client, path, onObject, clock } = options;
  const trouble = createTrouble(options);
  /** The version to watch from; empty: that of now. */
  let version = '';
  let failures = 0;

  function take(line: Buffer): void {
    if (line.length > LONGEST_LINE) return;
    const event = readEvent(line, path);
    version = event.version ?? version;
    trouble.works();
    if (event.type === 'ADDED' || event.type === 'MODIFIED') onObject(event.object);
  }

  async function watch(): Promise<void> {
    if (version === '') version = (await versionNow(client, path, signal)) ?? '';
    const collection = { version: () => version, take };
    const onOpen = () => void trouble.works();
    const { failure } = await watchOnce(
      { client, path, collection, seconds: WATCH_SECONDS, idleMs: DEAD_MS, clock, onOpen },
      signal,
    );
    if (failure !== undefined) throw failure.error;
  }

  while (!signal.aborted) {
    const started = clock.monotonic();
    try {
      await watch();
      failures = clock.monotonic() - started < SHORT_MS ? failures + 1 : 0;
    } catch (error) {
      if (signal.aborted) return;
      if (isExpired(error) || isFromTheFuture(error)) version = '';
      failures = clock.monotonic() - started < SHORT_MS ? failures + 1 : 1;
      trouble.failed('watch', error);
      if (error instanceof ApiError && error.status === 403) {
        await clock.delay(REFUSED_MS, signal);
        continue;
      }
    }
    if (failures > 0) await clock.delay(backoff(failures - 1, RETRY_MS.base, RETRY_MS.cap, clock.random), signal);
  }
}
