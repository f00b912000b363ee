import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../placement/json.ts';
import type { ApiClient } from './client.ts';
import { backoff, type Clock } from './clock.ts';
import { ApiError, isExpired } from './errors.ts';
import { createStore, isOlder, type Store, type Stored } from './store.ts';

/** One change of a kept object: `now` is absent where it was deleted, `before` where it is new. */
export type Change<T> = { readonly key: string; readonly now: T | undefined; readonly before: T | undefined };

export type ReflectorOptions<T> = {
  readonly client: ApiClient;
  /** Collection to list and watch: `/api/v1/pods`. */
  readonly path: string;
  /** Trims an object to what is read of it; called once for each, as it arrives. */
  readonly read: (object: JsonObject) => T;
  readonly keyOf: (object: T) => string;
  readonly onChange: (change: Change<T>) => void;
  readonly clock: Clock;
  /** A watch that ended otherwise than by its own time: why. */
  readonly onRestart?: (reason: string) => void;
  /** Milliseconds without a byte, bookmarks included, after which a watch counts as dead. */
  readonly idleMs?: number;
};

/** Keeps a store in step with a collection. */
export type Reflector<T> = {
  readonly store: Store<T>;
  /** Lists and watches until the signal aborts. Rejects only where the first list is refused (401, 403, 404). */
  run(signal: AbortSignal): Promise<void>;
  /** Whether the first list is complete. */
  synced(): boolean;
  /** Resolves when the first list is complete. */
  readonly whenSynced: Promise<void>;
};

const PAGE = 500;
const WATCH_SECONDS = 300;
const IDLE_MS = 90_000;
/** After this many watches in a row that gave nothing the version itself may be the fault (a restored etcd): list anew. */
const RELIST_AFTER = 5;
/** A watch that ends sooner than this counts as failed, so that a server that closes at once is not asked in a loop. */
const SHORT_MS = 1_000;

/** Creates a reflector; it starts with `run`. */
export function createReflector<T extends Stored>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, path, read, keyOf, onChange, clock, onRestart, idleMs = IDLE_MS } = options;
  const store = createStore<T>();
  let synced = false;
  /** The last version of the collection that was seen. */
  let last = '';
  let markSynced = () => {};
  /** Whether the last watch ended in an error without a single event. */
  let fruitless = false;
  const whenSynced = new Promise<void>((resolve) => {
    markSynced = resolve;
  });

  async function list(signal: AbortSignal): Promise<string> {
    const seen = new Set<string>();
    let token = '';
    let version = '';
    let reset = false;
    do {
      const query = `limit=${PAGE}${token ? `&continue=${encodeURIComponent(token)}` : ''}`;
      const page = await client.request('list', `${path}?${query}`, { signal });
      if (!isObject(page)) throw new Error(`list ${path}: the answer is no list`);
      const metadata = objectAt(page, 'metadata');
      version = stringAt(metadata, 'resourceVersion') ?? version;
      // Behind what was seen: etcd was restored from a backup, and every object is as it was then.
      reset ||= isOlder(version, last);
      for (const object of listAt(page, 'items') ?? []) seen.add(keep(object, reset));
      token = stringAt(metadata, 'continue') ?? '';
    } while (token !== '');
    for (const key of [...store.keys()]) {
      if (!seen.has(key)) drop(key);
    }
    last = version;
    return version;
  }

  function keep(object: JsonObject, reset = false): string {
    const now = read(object);
    const key = keyOf(now);
    const put = store.put(key, now, reset);
    if (put !== 'stale') onChange({ key, now, before: put.before });
    return key;
  }

  function drop(key: string): void {
    const before = store.delete(key);
    if (before !== undefined) onChange({ key, now: undefined, before });
  }

  /** Watches from a version; gives the last version seen, or undefined where the server has forgotten it. */
  async function watch(version: string, signal: AbortSignal): Promise<string | undefined> {
    const seconds = Math.round(WATCH_SECONDS * (1 + clock.random()));
    const query = `watch=true&allowWatchBookmarks=true&timeoutSeconds=${seconds}&resourceVersion=${version}`;
    const idle = new AbortController();
    let cancel = clock.after(idleMs, () => idle.abort());
    try {
      const chunks = await client.stream(`${path}?${query}`, AbortSignal.any([signal, idle.signal]));
      for await (const line of lines(chunks)) {
        cancel();
        cancel = clock.after(idleMs, () => idle.abort());
        const event = parseJson(line);
        if (!isObject(event)) throw new Error('an event of the watch is no JSON');
        const object = objectAt(event, 'object');
        if (event.type === 'ERROR') throw new ApiError(Number(object.code ?? 500), object, `watch ${path}`);
        last = stringAt(objectAt(object, 'metadata'), 'resourceVersion') ?? last;
        if (event.type === 'DELETED') drop(keyOf(read(object)));
        else if (event.type === 'ADDED' || event.type === 'MODIFIED') keep(object);
      }
      return last;
    } catch (error) {
      if (isExpired(error)) {
        onRestart?.('expired');
        return undefined;
      }
      if (signal.aborted) return last;
      fruitless = last === version && !idle.signal.aborted;
      onRestart?.(idle.signal.aborted ? 'silent' : error instanceof Error ? error.message : String(error));
      return last;
    } finally {
      cancel();
      idle.abort();
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    let version: string | undefined;
    let failures = 0;
    while (!signal.aborted) {
      const started = clock.monotonic();
      fruitless = false;
      try {
        if (version === undefined) {
          version = await list(signal);
          failures = 0;
          synced = true;
          markSynced();
        }
        version = failures < RELIST_AFTER ? await watch(version, signal) : undefined;
      } catch (error) {
        if (signal.aborted) return;
        if (!synced && error instanceof ApiError && [401, 403, 404].includes(error.status)) throw error;
        version = undefined;
        onRestart?.(error instanceof Error ? error.message : String(error));
      }
      failures = fruitless || clock.monotonic() - started < SHORT_MS ? failures + 1 : 0;
      if (failures > 0 && !signal.aborted) await clock.delay(backoff(failures - 1, 250, 30_000, clock.random), signal);
    }
  }

  return { store, run, synced: () => synced, whenSynced };
}

async function* lines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const tail = chunk.subarray(start, end);
      const line = parts.length === 0 ? tail : Buffer.concat([...parts, tail]);
      parts = [];
      start = end + 1;
      if (line.length > 0) yield line.toString('utf8');
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  }
}
