import { backoff, type Clock } from '../../kit/clock.ts';
import { messageOf } from '../../kit/errors.ts';
import { createTurns } from '../../kit/fairness/event-loop.ts';
import { ApiError, isExpired } from '../errors.ts';
import { type CollectionOptions, createCollection, type Stored } from './collection.ts';
import { createTrouble, type WatchAttempt } from './trouble.ts';
import { watchOnce } from './watch-once.ts';

export type ReflectorOptions<T> = CollectionOptions<T> & {
  readonly clock: Clock;
  /** The server has opened a watch, which it does at the start and after the end of the one before. */
  readonly onOpened?: (() => void) | undefined;
  /** A watch ended before its time; the reason. */
  readonly onRestart?: (reason: string) => void;
  /** Lists or watches fail: called once for each kind of failure, until {@link onWorking}. */
  readonly onTrouble?: (attempt: WatchAttempt, reason: string) => void;
  readonly onWorking?: () => void;
  /** Called for every line that arrives over the watch, with its bytes. */
  readonly onHeard?: ((bytes: number) => void) | undefined;
  /** Milliseconds for which a refused first list is tried again; default: 30 seconds. */
  readonly refusedMs?: number;
  /** Milliseconds without a byte, bookmarks included, after which a watch counts as dead. */
  readonly idleMs?: number;
};

/** Keeps a store in step with a collection of the API server. */
export type Reflector<T extends Stored> = ReturnType<typeof createReflector<T>>;

/** The least time for which a watch is requested; at most twice that, so that watches do not all end at once. */
const WATCH_SECONDS = 300;
const IDLE_MS = 90_000;
/** After this many watches in a row without an event, the version itself may be wrong (a restored etcd): list again. */
const RELIST_AFTER = 5;
/**
 * A watch that ends sooner than this counts as failed, so that a server that always closes at once is not asked in a
 * tight loop.
 */
const SHORT_MS = 1_000;
/** A watch that stays open for this long counts as working, even if nothing has happened yet, unless the one before was dead. */
const STEADY_MS = 10_000;
/** There are few reflectors, so a short wait burdens no server, and after an outage all see again soon. */
const RETRY_MS = { base: 250, cap: 3_000 } as const;
const REFUSED_MS = 30_000;
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 404]);

/** Creates a reflector; it starts with `run`. */
export function createReflector<T extends Stored>(options: ReflectorOptions<T>) {
  const { client, path, clock, onRestart, onHeard, idleMs = IDLE_MS, refusedMs = REFUSED_MS } = options;
  const collection = createCollection<T>(options, createTurns(clock));
  const trouble = createTrouble(options);
  /** Whether the first list is complete. */
  let isSynced = false;
  let refusedSince: number | undefined;
  let onSynced = () => {};
  const whenSynced = new Promise<void>((resolve) => {
    onSynced = resolve;
  });
  let isListed = false;
  /** Counts in a row: failed lists, failed watches, and watches that gave nothing although the server opened them. */
  let [lists, watches, fruitless] = [0, 0, 0];
  /** `isBack`: the server has just answered again after it was away. */
  let [wasAway, isBack] = [false, false];
  /** After a silent watch, until the next list: how many changes were seen until then. */
  let seenBefore: number | undefined;
  /** Whether the last silent watch had missed changes, and nothing was heard since. */
  let isDead = false;

  /** Lists once; returns the milliseconds to wait if that failed. */
  async function tryList(signal: AbortSignal): Promise<number> {
    try {
      await collection.list(signal);
      [isListed, isSynced, lists] = [true, true, 0];
      onSynced();
      judge();
      return 0;
    } catch (error) {
      if (signal.aborted) return 0;
      refuse(error);
      return failed('list', error, lists++);
    }
  }

  /** After the server was away, asks whether it came back with an older etcd; returns the milliseconds to wait if that failed. */
  async function tryAgain(signal: AbortSignal): Promise<number> {
    try {
      if (await collection.wentBack(signal)) {
        onRestart?.('restored');
        isListed = false;
      }
      [wasAway, isBack] = [false, true];
      return 0;
    } catch (error) {
      return signal.aborted ? 0 : failed('watch', error, watches++);
    }
  }

  /** Watches once; returns the milliseconds to wait before the next list or watch. */
  async function tryWatch(signal: AbortSignal): Promise<number> {
    const started = clock.monotonic();
    const wasBack = isBack;
    isBack = false;
    const seconds = Math.round(WATCH_SECONDS * (1 + clock.random()));
    const { heard, failure } = await watchOnce(
      { client, path, seconds, idleMs, clock, collection, onOpen, onHeard, onFirst: trouble.works },
      signal,
    );
    if (signal.aborted) return 0;
    const isShort = clock.monotonic() - started < SHORT_MS;
    if (!isShort && (heard || failure === undefined)) watches = 0;
    if (heard) {
      fruitless = 0;
      isDead = false;
      collection.watched();
    }
    if (failure?.cause === 'silent') {
      onRestart?.('silent');
      seenBefore = collection.changes();
      isListed = false;
      return 0;
    }
    wasAway = failure?.cause === 'away';
    if (failure === undefined && !isShort) {
      trouble.works();
      return 0;
    }
    const { error, cause } = failure ?? { error: new Error('closed at once'), cause: 'broken' };
    if (cause === 'version') {
      onRestart?.('expired');
      isListed = false;
      if (!heard && isExpired(error)) collection.expired();
      // This is normal for a watch that was away for too long, and for a server that has just started. It is trouble only if it
      // happens again. The wait of the outage is over.
      if ((heard && !isShort) || wasBack) return 0;
    } else if (failure !== undefined) onRestart?.(messageOf(error));
    if ((cause === 'broken' || cause === 'away') && !heard) fruitless += 1;
    if (fruitless >= RELIST_AFTER) [fruitless, isListed] = [0, false];
    trouble.failed('watch', error);
    return waitMs(error, watches++, clock);
  }

  /** A server need not send bookmarks, so a silent watch was dead only if the list after it shows a change that it had missed. */
  function judge(): void {
    if (seenBefore === undefined) return;
    isDead = collection.changes() > seenBefore;
    if (isDead) trouble.failed('watch', new Error('silent'));
    else trouble.works();
    seenBefore = undefined;
  }

  /** Reports a failure that is not the end of a watch; returns the milliseconds to wait. */
  function failed(attempt: WatchAttempt, error: unknown, failures: number): number {
    trouble.failed(attempt, error);
    onRestart?.(messageOf(error));
    return waitMs(error, failures, clock);
  }

  /** Believes an open watch after a while. After a dead one, an open but silent watch does not prove that the server works. */
  function onOpen(): (() => void) | undefined {
    options.onOpened?.();
    const proves = trouble.brokenSince() !== undefined && !isDead;
    return proves ? clock.after(STEADY_MS, trouble.works) : undefined;
  }

  /** Records a list that failed. Throws the error if the first list is refused, and refusals have lasted for too long. */
  function refuse(error: unknown): void {
    const isRefusal = !isSynced && error instanceof ApiError && REFUSALS.has(error.status);
    refusedSince = isRefusal ? (refusedSince ?? clock.monotonic()) : undefined;
    if (refusedSince !== undefined && clock.monotonic() - refusedSince >= refusedMs) throw error;
  }

  return {
    store: collection.store,
    /**
     * Lists and watches until the signal aborts. Rejects only if the first list is refused (401, 403, 404) and still is
     * after 30 seconds: an API server that has just started refuses everybody until it has read its roles.
     */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const ms = await (!isListed ? tryList(signal) : wasAway ? tryAgain(signal) : tryWatch(signal));
        if (ms > 0 && !signal.aborted) await clock.delay(ms, signal);
      }
    },
    /** Whether the first list is complete. */
    synced: (): boolean => isSynced,
    whenSynced,
    /** Since when the store is out of step (refused, failing, silent), in milliseconds on the monotonic clock. */
    health: (): { readonly brokenSinceMs: number | undefined } => ({ brokenSinceMs: trouble.brokenSince() }),
  };
}

/** Waits longer after each failure, and at least as long as the server asks. */
function waitMs(error: unknown, failures: number, { random }: Clock): number {
  const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(asked, backoff(failures, RETRY_MS.base, RETRY_MS.cap, random));
}
