import { onAbort } from '../../kit/abort.ts';
import { backoff, type Clock } from '../../kit/clock.ts';
import { messageOf } from '../../kit/errors.ts';
import { createTurns, inTurns } from '../../kit/fairness/turns.ts';
import { isObject, type JsonObject, objectAt, parseJson, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../client.ts';
import { ApiError, ConnectionError, isExpired, isFromTheFuture } from '../errors.ts';
import type { Keeper } from './keeper.ts';
import { splitLines } from './lines.ts';
import { createLister } from './lister.ts';
import { isModified, type Sections, sectionsOf, withoutManagedFields } from './sections.ts';
import { createStore, type Store, type Stored } from './store.ts';
import { createTrouble, type WatchAttempt } from './trouble.ts';

/** One change of a stored object: `now` is absent if it was deleted, `before` if it is new. */
export type Change<T> = {
  readonly key: string;
  readonly now: T | undefined;
  readonly before: T | undefined;
  /** The server's versions started over (a restored etcd): the same version or generation may have another content. */
  readonly isReset?: true;
};

export type ReflectorOptions<T> = {
  readonly client: ApiClient;
  /** The collection to list and watch, for example `/api/v1/pods`. */
  readonly path: string;
  /** The query that selects a part of the collection: `labelSelector=app%3Dweb`. Default: all of it. */
  readonly query?: string;
  /**
   * Reduces an object to the fields that are needed; called once for each object as it arrives. `isReset`: nothing that was read
   * of the object before is valid, as in {@link Change}.
   */
  readonly read: (object: JsonObject, isReset: boolean) => T;
  /**
   * Reads a change of a stored object from the parts of its event that it needs. Undefined: the event must be read as a whole.
   * Absent: every event is.
   */
  readonly readSections?: ((sections: Sections) => T | undefined) | undefined;
  readonly keyOf: (object: T) => string;
  /** Decides how much of each object is kept; absent: all of it. */
  readonly keeper?: Keeper<T> | undefined;
  readonly onChange: (change: Change<T>) => void;
  readonly clock: Clock;
  /** A watch ended before its time; the reason. */
  readonly onRestart?: (reason: string) => void;
  /** Lists or watches fail: called once for each kind of failure, until {@link onWorking}. */
  readonly onTrouble?: (attempt: WatchAttempt, reason: string) => void;
  /** Lists and watches work again. */
  readonly onWorking?: () => void;
  /** Called for every line that arrives over the watch, with its bytes. */
  readonly onHeard?: ((bytes: number) => void) | undefined;
  /** Milliseconds for which a refused first list is tried again; default: 30 seconds. */
  readonly refusedMs?: number;
  /** Milliseconds without a byte, bookmarks included, after which a watch counts as dead. */
  readonly idleMs?: number;
};

/** Keeps a store in step with a collection of the API server. */
export type Reflector<T> = {
  readonly store: Store<T>;
  /**
   * Lists and watches until the signal aborts. Rejects only if the first list is refused (401, 403, 404) and still is
   * after 30 seconds: an API server that has just started refuses everybody until it has read its roles.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Whether the first list is complete. */
  synced(): boolean;
  /** Resolves when the first list is complete. */
  readonly whenSynced: Promise<void>;
  /** Since when the store is out of step (refused, failing, silent), in milliseconds on the monotonic clock. */
  health(): { readonly brokenSinceMs: number | undefined };
};

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
const RETRY_MS = { base: 250, cap: 30_000 } as const;
const REFUSED_MS = 30_000;
/** The longest wait between two attempts at a refused first list. */
const REFUSED_CAP_MS = 5_000;
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 404]);

/** How a watch ended: whether anything arrived, and the failure if it ended before its time. */
type Ended = { readonly heard: boolean; readonly failure: Failure | undefined };
type Failure = {
  readonly error: Error;
  /**
   * `version`: the server no longer knows the version. `refused`: the server did not open the watch. `fruitless`: the
   * connection or the watch itself failed.
   */
  readonly cause: 'version' | 'refused' | 'fruitless';
  /** Nothing arrived for too long: over the open watch, or not even its answer. */
  readonly silence?: 'open' | 'unanswered';
  /** The server gave no answer at all. */
  readonly isAway?: boolean;
};

/** Creates a reflector; it starts with `run`. */
export function createReflector<T extends Stored>(options: ReflectorOptions<T>): Reflector<T> {
  const {
    client,
    path,
    query: part = '',
    read,
    keyOf,
    onChange,
    clock,
    onRestart,
    idleMs = IDLE_MS,
    refusedMs = REFUSED_MS,
  } = options;
  const store = createStore<T>(options.keeper);
  const turns = createTurns(clock);
  const trouble = createTrouble(options);
  const lister = createLister({ client, path, query: part, keep });
  let synced = false;
  /** The last version of the collection that was seen. */
  let last = '';
  /** How often a stored object has changed, appeared or gone. */
  let changes = 0;
  let hasSeenBookmark = false;
  let markSynced = () => {};
  const whenSynced = new Promise<void>((resolve) => {
    markSynced = resolve;
  });

  async function list(signal: AbortSignal): Promise<void> {
    const { version, keys } = await lister.read(last, signal);
    await inTurns(turns, store.keys(), (key) => {
      if (!keys.has(key)) drop(key);
    });
    last = version;
  }

  function keep(object: JsonObject, reset = false): string {
    return put(read(object, reset), reset);
  }

  function put(object: T, reset = false): string {
    const key = keyOf(object);
    const stored = store.put(key, object, reset);
    if (stored === 'stale') return key;
    const { before } = stored;
    if (before?.uid !== object.uid || before.resourceVersion !== object.resourceVersion) changes += 1;
    onChange({ key, ...stored, ...(reset ? { isReset: true } : {}) });
    return key;
  }

  function drop(key: string): void {
    const before = store.delete(key);
    if (before === undefined) return;
    changes += 1;
    onChange({ key, now: undefined, before });
  }

  /** Watches from the last version that was seen. `wasDead`: the previous watch had missed changes. */
  async function watch(wasDead: boolean, signal: AbortSignal): Promise<Ended> {
    const seconds = Math.round(WATCH_SECONDS * (1 + clock.random()));
    const query = `${part === '' ? '' : `${part}&`}watch=true&allowWatchBookmarks=true&timeoutSeconds=${seconds}&resourceVersion=${last}`;
    const over = new AbortController();
    const forget = onAbort(signal, () => over.abort(signal.reason));
    let [isSilent, isOpen, heard] = [false, false, false];
    const fallSilent = (): void => {
      isSilent = true;
      over.abort(new Error(`silent for ${idleMs / 1000} s`));
    };
    let heardAt = clock.monotonic();
    // The timer is not set again at each event: when it is over, it goes on for the time since the last one.
    const lookLater = (ms: number): (() => void) =>
      clock.after(ms, () => {
        const leftMs = heardAt + idleMs - clock.monotonic();
        if (leftMs > 0) cancelIdle = lookLater(leftMs);
        else fallSilent();
      });
    let cancelIdle = lookLater(idleMs);
    let cancelSteady = () => {};
    try {
      const onLine = (line: Buffer): void => {
        heardAt = clock.monotonic();
        take(line);
        options.onHeard?.(line.length);
        if (!heard) trouble.works();
        heard = true;
      };
      await client.watch(`${path}?${query}`, {
        signal: over.signal,
        onOpen() {
          isOpen = true;
          // After a dead watch, an open but silent watch does not prove that the server works.
          if (trouble.brokenSince() !== undefined && !wasDead) cancelSteady = clock.after(STEADY_MS, trouble.works);
        },
        onPiece: splitLines(onLine),
      });
      return { heard, failure: undefined };
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      if (isSilent) {
        const silence = isOpen ? 'open' : 'unanswered';
        return { heard, failure: { error: new Error('silent'), cause: 'fruitless', silence } };
      }
      if (isExpired(error) || isFromTheFuture(error)) return { heard, failure: { error, cause: 'version' } };
      const cause = error instanceof ApiError && !isOpen ? 'refused' : 'fruitless';
      return { heard, failure: { error, cause, isAway: error instanceof ConnectionError && !isOpen } };
    } finally {
      cancelIdle();
      cancelSteady();
      forget();
      over.abort();
    }
  }

  /** Takes one event of the watch. Throws if the server says that the watch is over. */
  function take(line: Buffer): void {
    const sections = options.readSections && isModified(line) ? sectionsOf(line) : undefined;
    const read = sections && options.readSections?.(sections);
    if (read !== undefined) {
      last = read.resourceVersion;
      put(read);
      return;
    }
    const event = parseJson(withoutManagedFields(line));
    if (!isObject(event)) throw new Error('an event of the watch is not JSON');
    const object = objectAt(event, 'object');
    if (event.type === 'ERROR') throw new ApiError(Number(object.code ?? 500), object, `watch ${path}`);
    last = stringAt(objectAt(object, 'metadata'), 'resourceVersion') ?? last;
    if (event.type === 'BOOKMARK') hasSeenBookmark = true;
    if (event.type === 'DELETED') drop(keyOf(options.read(object, false)));
    else if (event.type === 'ADDED' || event.type === 'MODIFIED') keep(object);
  }

  async function run(signal: AbortSignal): Promise<void> {
    let isListed = false;
    let refusedSince: number | undefined;
    /** Counts in a row: failed lists, failed watches, and watches that gave nothing although the server opened them. */
    let [lists, watches, fruitless] = [0, 0, 0];
    /** `isBack`: the server has just answered again after it was away. `wasDead`: the last silent watch had missed changes. */
    let [wasDead, wasAway, isBack] = [false, false, false];
    /** After a silent watch, until the next list: the number of changes then, and since when it was silent. */
    let silent: { readonly changes: number; readonly since: number } | undefined;

    /** Lists once; returns the milliseconds to wait if that failed. */
    async function tryList(): Promise<number> {
      try {
        await list(signal);
        isListed = true;
        lists = 0;
        synced = true;
        markSynced();
        judgeSilence();
        return 0;
      } catch (error) {
        if (signal.aborted) return 0;
        const now = clock.monotonic();
        refusedSince = !synced && isRefusal(error) ? (refusedSince ?? now) : undefined;
        if (refusedSince !== undefined && now - refusedSince >= refusedMs) throw error;
        trouble.failed('list', error);
        onRestart?.(messageOf(error));
        return waitMs(error, lists++, refusedSince === undefined ? RETRY_MS.cap : REFUSED_CAP_MS);
      }
    }

    /**
     * Says after a list whether the silent watch before it was dead. A server need not send bookmarks, so a watch may be silent
     * because nothing happened. It was dead if the list shows a change that it had missed. Where bookmarks do arrive, silence itself
     * was the first sign; elsewhere the change may have come after the end of the watch.
     */
    function judgeSilence(): void {
      if (silent === undefined) return;
      wasDead = changes > silent.changes;
      if (wasDead) trouble.failed('watch', new Error('silent'), hasSeenBookmark ? silent.since : clock.monotonic());
      else trouble.works();
      silent = undefined;
    }

    /** After the server was away, asks whether it came back with an older etcd; returns the milliseconds to wait if that failed. */
    async function tryAgain(): Promise<number> {
      try {
        if (await lister.wentBack(last, signal)) {
          onRestart?.('restored');
          isListed = false;
        }
        [wasAway, isBack] = [false, true];
        return 0;
      } catch (error) {
        if (signal.aborted) return 0;
        trouble.failed('watch', error);
        onRestart?.(messageOf(error));
        return waitMs(error, watches++, RETRY_MS.cap);
      }
    }

    /** Watches once; returns the milliseconds to wait before the next list or watch. */
    async function tryWatch(): Promise<number> {
      const started = clock.monotonic();
      const wasBack = isBack;
      isBack = false;
      const { heard, failure } = await watch(wasDead, signal);
      if (signal.aborted) return 0;
      const now = clock.monotonic();
      const isShort = now - started < SHORT_MS;
      if (!isShort && (heard || failure === undefined)) watches = 0;
      if (heard) {
        fruitless = 0;
        wasDead = false;
        lister.watched();
      }
      if (failure?.silence === 'open') {
        onRestart?.('silent');
        [isListed, silent] = [false, { changes, since: now - idleMs }];
        return 0;
      }
      wasAway = failure?.isAway === true;
      if (failure === undefined && !isShort) {
        trouble.works();
        return 0;
      }
      const { error, cause } = failure ?? { error: new Error('closed at once'), cause: 'fruitless' };
      if (cause === 'version') {
        onRestart?.('expired');
        isListed = false;
        if (!heard && isExpired(error)) lister.expired();
        // Normal for a watch that was away for too long, and for a server that has just started; it is trouble only if it
        // happens again. The wait of the outage is over.
        if ((heard && !isShort) || wasBack) return 0;
      } else if (failure !== undefined) onRestart?.(messageOf(error));
      if (cause === 'fruitless' && !heard) fruitless += 1;
      if (fruitless >= RELIST_AFTER) {
        fruitless = 0;
        isListed = false;
      }
      trouble.failed('watch', error, failure?.silence === 'unanswered' ? now - idleMs : now);
      return waitMs(error, watches++, RETRY_MS.cap);
    }

    while (!signal.aborted) {
      const ms = !isListed ? await tryList() : wasAway ? await tryAgain() : await tryWatch();
      if (ms > 0 && !signal.aborted) await clock.delay(ms, signal);
    }
  }

  /** Waits longer after each failure, and at least as long as the server asks. */
  function waitMs(error: unknown, failures: number, cap: number): number {
    const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(asked, backoff(failures, RETRY_MS.base, cap, clock.random));
  }

  return {
    store,
    run,
    synced: () => synced,
    whenSynced,
    health: () => ({ brokenSinceMs: trouble.brokenSince() }),
  };
}

function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && REFUSALS.has(error.status);
}
