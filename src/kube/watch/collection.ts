import { inTurns, type Turns } from '../../kit/fairness/event-loop.ts';
import { type JsonObject, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../api-client.ts';
import { isExpired } from '../errors.ts';
import { readPage, versionNow } from '../read.ts';
import { readEvent, withoutManagedFields } from './watch-once.ts';

/** One change of a stored object: `now` is absent if it was deleted, `before` if it is new. */
export type StoreChange<T> = {
  readonly key: string;
  readonly now: T | undefined;
  readonly before: T | undefined;
};

export type CollectionOptions<T> = {
  readonly client: ApiClient;
  /** The collection to list and watch, for example `/api/v1/pods`; a query may select a part of it: `?labelSelector=app%3Dweb`. */
  readonly path: string;
  /**
   * Reduces an object to the fields that are needed; called once for each object as it arrives. `isReset`: nothing that was read
   * of the object before is valid, because the server's versions started over (a restored etcd).
   */
  readonly read: (object: JsonObject, isReset: boolean) => T;
  readonly keyOf: (object: T) => string;
  readonly onChange: (change: StoreChange<T>) => void;
};

/** The list under way. `isReset`: the stored objects may be newer than the collection itself. */
type Listing = { token: string; version: string; isReset: boolean; readonly keys: Set<string> };

/** After its pages expired this often, the collection is read in one piece, as client-go does. */
const EXPIRIES = 2;
/** Milliseconds for reading a collection in one piece. */
const WHOLE_MS = 10 * 60_000;

/** Creates an empty collection. It has the objects as its lists and the events of its watches leave them. */
export function createCollection<T extends Stored>(options: CollectionOptions<T>, turns: Turns) {
  const { client, path, read, keyOf, onChange } = options;
  const store = createStore<T>();
  let listing: Listing | undefined;
  let expiries = 0;
  /** The last version of the collection that was seen. */
  let last = '';
  let changes = 0;

  function keep(given: JsonObject, isReset = false): string {
    const object = read(given, isReset);
    const key = keyOf(object);
    const stored = store.put(key, object, isReset);
    if (stored === 'stale') return key;
    const { before } = stored;
    if (before?.uid !== object.uid || before.resourceVersion !== object.resourceVersion) changes += 1;
    onChange({ key, ...stored });
    return key;
  }

  function drop(key: string): void {
    const before = store.delete(key);
    if (before === undefined) return;
    changes += 1;
    onChange({ key, now: undefined, before });
  }

  async function readNext(now: Listing, signal: AbortSignal): Promise<void> {
    const isWhole = now.token === '' && expiries >= EXPIRIES;
    const how = { signal, textOf: withoutManagedFields, ...(isWhole ? { completeMs: WHOLE_MS } : {}) };
    const receiver = {
      onMetadata(metadata: JsonObject) {
        // A first page that broke off is requested again as a new state of the collection: what was seen of the old one counts
        // no more. Later pages belong to one state, however often they are requested.
        if (now.token === '') {
          now.keys.clear();
          now.isReset = false;
        }
        now.version = stringAt(metadata, 'resourceVersion') ?? now.version;
        // The version is older than the last one seen: etcd was restored from a backup, and every object is back in its state of then.
        now.isReset ||= isOlder(now.version, last);
      },
      onItem: (object: JsonObject) => void now.keys.add(keep(object, now.isReset)),
    };
    now.token = await readPage(client, path, isWhole ? undefined : now.token, receiver, how);
  }

  return {
    store,
    /** Reads the whole collection. Called again after it threw, it goes on with the page that failed, unless the pages have expired. */
    async list(signal: AbortSignal): Promise<void> {
      listing ??= { token: '', version: '', isReset: false, keys: new Set() };
      const now = listing;
      try {
        do await readNext(now, signal);
        while (now.token !== '');
      } catch (error) {
        if (isExpired(error)) [listing, expiries] = [undefined, expiries + 1];
        throw error;
      }
      listing = undefined;
      await inTurns(turns, store.keys(), (key) => {
        if (!now.keys.has(key)) drop(key);
      });
      last = now.version;
    },
    /** Call when the version that was read had expired before it could be watched. */
    expired(): void {
      expiries += 1;
    },
    /** Call when the version that was read could be watched. */
    watched(): void {
      expiries = 0;
    },
    /**
     * Whether the server has an older version than the last one seen: etcd was restored from a backup. A watch from there would be
     * silent, and miss what happens until the server reaches that version again.
     */
    async wentBack(signal: AbortSignal): Promise<boolean> {
      const version = await versionNow(client, path, signal);
      return version !== undefined && isOlder(version, last);
    },
    /** Takes one event of the watch. Throws if the server says that the watch is over. */
    take(line: Buffer): void {
      const { type, object, version } = readEvent(line, path);
      last = version ?? last;
      if (type === 'DELETED') drop(keyOf(read(object, false)));
      else if (type === 'ADDED' || type === 'MODIFIED') keep(object);
    },
    /** Returns the last version of the collection that was seen. */
    version: (): string => last,
    /** Counts how often a stored object has changed, appeared or gone. */
    changes: (): number => changes,
  };
}

/** The fields that every stored object has. */
export type Stored = { readonly uid: string; readonly resourceVersion: string };

/** Objects by key, as the last event or this process's last write left them. */
export type Store<T extends Stored> = ReturnType<typeof createStore<T>>;

/** Creates an empty store. */
export function createStore<T extends Stored>() {
  const objects = new Map<string, T>();
  return {
    get: (key: string): T | undefined => objects.get(key),
    values: (): Iterable<T> => objects.values(),
    keys: (): Iterable<string> => objects.keys(),
    get size(): number {
      return objects.size;
    },
    /**
     * Stores an object. Returns what was stored and what was there before. If a newer object of the same uid is there, that one stays
     * and the result is `stale`: the answer to a write and the watch event about it arrive in any order. `reset`: the server's versions
     * started over, so the object is stored whatever its version.
     */
    put(key: string, object: T, reset = false): { readonly now: T; readonly before: T | undefined } | 'stale' {
      const before = objects.get(key);
      const isKnown = !reset && before?.uid === object.uid;
      if (isKnown && isOlder(object.resourceVersion, before.resourceVersion)) return 'stale';
      objects.set(key, object);
      return { now: object, before };
    },
    delete(key: string): T | undefined {
      const before = objects.get(key);
      objects.delete(key);
      return before;
    },
  };
}

/** Whether one resource version is older than another; false for versions that are not decimal numbers (KEP-5504). */
export function isOlder(one: string, other: string): boolean {
  if (!/^[0-9]+$/.test(one) || !/^[0-9]+$/.test(other)) return false;
  return one.length === other.length ? one < other : one.length < other.length;
}
