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
  readonly refusedMs?: number | undefined;
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
/** A watch that ends sooner than this counts as failed, so that a server that always closes at once is not asked in a tight loop. */
const SHORT_MS = 1_000;
/** A watch that stays open for this long counts as working, even if nothing has happened yet, unless the one before was dead. */
const STEADY_MS = 10_000;
/** There are few reflectors, so a short wait burdens no server, and after an outage all see again soon. */
const RETRY_MS = { base: 250, cap: 3_000 } as const;
const REFUSED_MS = 30_000;
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 404]);

type ReflectorState = Omit<ReflectorOptions<Stored>, keyof CollectionOptions<Stored>> &
  Pick<CollectionOptions<Stored>, 'client' | 'path'> & {
    readonly collection: Omit<ReturnType<typeof createCollection>, 'store'>;
    readonly trouble: ReturnType<typeof createTrouble>;
    /** Whether the first list is complete. */
    isSynced: boolean;
    readonly onSynced: () => void;
    refusedSince: number | undefined;
    isListed: boolean;
    /** Counts in a row: failed lists, failed watches, and watches that gave nothing although the server opened them. */
    lists: number;
    watches: number;
    fruitless: number;
    wasAway: boolean;
    /** Whether the server has just answered again after it was away. */
    isBack: boolean;
    /** After a silent watch, until the next list: how many changes were seen until then. */
    seenBefore: number | undefined;
    /** Whether the last silent watch had missed changes, and nothing was heard since. */
    isDead: boolean;
  };

/** Creates a reflector; it starts with `run`. */
export function createReflector<T extends Stored>(options: ReflectorOptions<T>) {
  let onSynced = () => {};
  const whenSynced = new Promise<void>((resolve) => {
    onSynced = resolve;
  });
  const collection = createCollection<T>(options, createTurns(options.clock));
  const trouble = createTrouble(options);
  const state: ReflectorState = {
    ...{ ...options, collection, trouble, onSynced, isSynced: false, isListed: false, refusedSince: undefined },
    ...{ lists: 0, watches: 0, fruitless: 0, wasAway: false, isBack: false, seenBefore: undefined, isDead: false },
  };
  return {
    store: collection.store,
    /**
     * Lists and watches until the signal aborts. Rejects only if the first list is refused (401, 403, 404) and still is
     * after 30 seconds: an API server that has just started refuses everybody until it has read its roles.
     */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const next = !state.isListed ? tryList : state.wasAway ? tryAgain : tryWatch;
        const ms = await next(state, signal);
        if (ms > 0 && !signal.aborted) await options.clock.delay(ms, signal);
      }
    },
    /** Whether the first list is complete. */
    synced: (): boolean => state.isSynced,
    whenSynced,
    /** Since when the store is out of step (refused, failing, silent), in milliseconds on the monotonic clock. */
    health: (): { readonly brokenSinceMs: number | undefined } => ({ brokenSinceMs: trouble.brokenSince() }),
  };
}

/** Lists once; returns the milliseconds to wait if that failed. */
async function tryList(state: ReflectorState, signal: AbortSignal): Promise<number> {
  try {
    await state.collection.list(signal);
    [state.isListed, state.isSynced, state.lists] = [true, true, 0];
    state.onSynced();
    judge(state);
    return 0;
  } catch (error) {
    if (signal.aborted) return 0;
    refuse(state, error);
    return failed(state, 'list', error, state.lists++);
  }
}

/** A server need not send bookmarks, so a silent watch was dead only if the list after it shows a change that it had missed. */
function judge(state: ReflectorState): void {
  if (state.seenBefore === undefined) return;
  state.isDead = state.collection.changes() > state.seenBefore;
  if (state.isDead) state.trouble.failed('watch', new Error('silent'));
  else state.trouble.works();
  state.seenBefore = undefined;
}

/** Records a list that failed. Throws the error if the first list is refused, and refusals have lasted for too long. */
function refuse(state: ReflectorState, error: unknown): void {
  const { isSynced, clock, refusedMs = REFUSED_MS } = state;
  const isRefusal = !isSynced && error instanceof ApiError && REFUSALS.has(error.status);
  state.refusedSince = isRefusal ? (state.refusedSince ?? clock.monotonic()) : undefined;
  if (state.refusedSince !== undefined && clock.monotonic() - state.refusedSince >= refusedMs) throw error;
}

/** After the server was away, asks whether it came back with an older etcd; returns the milliseconds to wait if that failed. */
async function tryAgain(state: ReflectorState, signal: AbortSignal): Promise<number> {
  try {
    if (await state.collection.wentBack(signal)) {
      state.onRestart?.('restored');
      state.isListed = false;
    }
    [state.wasAway, state.isBack] = [false, true];
    return 0;
  } catch (error) {
    return signal.aborted ? 0 : failed(state, 'watch', error, state.watches++);
  }
}

/** Watches once; returns the milliseconds to wait before the next list or watch. */
async function tryWatch(state: ReflectorState, signal: AbortSignal): Promise<number> {
  const { clock, collection, trouble, onRestart, idleMs = IDLE_MS } = state;
  const started = clock.monotonic();
  const wasBack = state.isBack;
  state.isBack = false;
  const seconds = Math.round(WATCH_SECONDS * (1 + clock.random()));
  const { heard, failure } = await watchOnce(
    { ...state, seconds, idleMs, onOpen: () => onOpen(state), onFirst: trouble.works },
    signal,
  );
  if (signal.aborted) return 0;
  const isShort = clock.monotonic() - started < SHORT_MS;
  if (!isShort && (heard || failure === undefined)) state.watches = 0;
  if (heard) {
    state.fruitless = 0;
    state.isDead = false;
    collection.watched();
  }
  if (failure?.cause === 'silent') {
    onRestart?.('silent');
    state.seenBefore = collection.changes();
    state.isListed = false;
    return 0;
  }
  state.wasAway = failure?.cause === 'away';
  if (failure === undefined && !isShort) {
    trouble.works();
    return 0;
  }
  const { error, cause } = failure ?? { error: new Error('closed at once'), cause: 'broken' };
  if (cause === 'version') {
    onRestart?.('expired');
    state.isListed = false;
    if (!heard && isExpired(error)) collection.expired();
    // This is normal for a watch that was away for too long, and for a server that has just started. It is trouble only if it
    // happens again. The wait of the outage is over.
    if ((heard && !isShort) || wasBack) return 0;
  } else if (failure !== undefined) onRestart?.(messageOf(error));
  if ((cause === 'broken' || cause === 'away') && !heard) state.fruitless += 1;
  if (state.fruitless >= RELIST_AFTER) [state.fruitless, state.isListed] = [0, false];
  trouble.failed('watch', error);
  return waitMs(error, state.watches++, clock);
}

/** Believes an open watch after a while. After a dead one, an open but silent watch does not prove that the server works. */
function onOpen({ onOpened, trouble, isDead, clock }: ReflectorState): (() => void) | undefined {
  onOpened?.();
  const proves = trouble.brokenSince() !== undefined && !isDead;
  return proves ? clock.after(STEADY_MS, trouble.works) : undefined;
}

/** Reports a failure that is not the end of a watch; returns the milliseconds to wait. */
function failed(state: ReflectorState, attempt: WatchAttempt, error: unknown, failures: number): number {
  state.trouble.failed(attempt, error);
  state.onRestart?.(messageOf(error));
  return waitMs(error, failures, state.clock);
}

/** Waits longer after each failure, and at least as long as the server asks. */
function waitMs(error: unknown, failures: number, { random }: Clock): number {
  const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(asked, backoff(failures, RETRY_MS.base, RETRY_MS.cap, random));
}
