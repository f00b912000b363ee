import { inTurns, type Turns } from '../../kit/fairness/event-loop.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { ApiClient } from '../api-client.ts';
import { readEvent } from './lines.ts';
import { createLister } from './lister.ts';
import { createStore, type Stored } from './store.ts';

/** One change of a stored object: `now` is absent if it was deleted, `before` if it is new. */
export type Change<T> = {
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
  readonly onChange: (change: Change<T>) => void;
};

/** The objects of a collection, as its lists and the events of its watches leave them. */
export type Collection<T extends Stored> = ReturnType<typeof createCollection<T>>;

/** Creates an empty collection. */
export function createCollection<T extends Stored>(options: CollectionOptions<T>, turns: Turns) {
  const { path, read, keyOf, onChange } = options;
  const store = createStore<T>();
  const lister = createLister({ ...options, keep });
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

  return {
    store,
    expired: lister.expired,
    watched: lister.watched,
    /** Reads the whole collection. Called again after it threw, it goes on with the page that failed. */
    async list(signal: AbortSignal): Promise<void> {
      const { version, keys } = await lister.read(last, signal);
      await inTurns(turns, store.keys(), (key) => {
        if (!keys.has(key)) drop(key);
      });
      last = version;
    },
    /** Whether the server has an older version than the last one seen: etcd was restored from a backup. */
    wentBack: (signal: AbortSignal): Promise<boolean> => lister.wentBack(last, signal),
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
