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
