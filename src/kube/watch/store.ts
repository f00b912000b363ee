/** What every kept object has, whatever it was trimmed to. */
export type Stored = { readonly uid: string; readonly resourceVersion: string };

/** Objects by key, as the last event or our own last write left them. */
export type Store<T> = {
  get(key: string): T | undefined;
  values(): Iterable<T>;
  keys(): Iterable<string>;
  readonly size: number;
  /**
   * Keeps an object unless what is there of the same uid is newer; says what was there before, or `stale` where it was
   * kept. The answer to a write of ours and the event of it arrive in any order. `reset`: the server's versions began
   * anew, so the object is kept whatever it says.
   */
  put(key: string, object: T, reset?: boolean): { readonly before: T | undefined } | 'stale';
  delete(key: string): T | undefined;
};

/** Creates an empty store. */
export function createStore<T extends Stored>(): Store<T> {
  const objects = new Map<string, T>();
  return {
    get: (key) => objects.get(key),
    values: () => objects.values(),
    keys: () => objects.keys(),
    get size() {
      return objects.size;
    },
    put(key, object, reset = false) {
      const before = objects.get(key);
      if (
        !reset &&
        before !== undefined &&
        before.uid === object.uid &&
        isOlder(object.resourceVersion, before.resourceVersion)
      ) {
        return 'stale';
      }
      objects.set(key, object);
      return { before };
    },
    delete(key) {
      const before = objects.get(key);
      objects.delete(key);
      return before;
    },
  };
}

/** Whether one resource version comes before another; versions that are no decimal numbers never do (KEP-5504). */
export function isOlder(one: string, other: string): boolean {
  if (!/^[0-9]+$/.test(one) || !/^[0-9]+$/.test(other)) return false;
  return one.length === other.length ? one < other : one.length < other.length;
}
