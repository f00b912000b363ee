import type { Clock } from '../kit/clock.ts';
import { isOlder, type Store, type Stored } from '../kube/watch/store.ts';

/**
 * The resource versions that this process's own writes created. Until the watch shows such a version, the store is behind, and a
 * decision would use the object as it was before the write.
 */
export type Answered = {
  set(key: string, version: Stored): void;
  /** Returns the milliseconds to wait for the event of the last write; 0: the store is up to date. */
  behindMs(key: string, seen: Stored): number;
  forget(key: string): void;
};

/** The longest wait. After etcd is restored from a backup, versions start again lower, and the event never comes. */
const MOST_MS = 30_000;

/** Creates an empty memory over a store. */
export function createAnswered(store: Pick<Store<Stored>, 'get'>, clock: Clock): Answered {
  const versions = new Map<string, Stored & { readonly at: number }>();
  return {
    set(key, { uid, resourceVersion }) {
      const seen = store.get(key);
      // The event often arrives before the answer to the write.
      if (seen !== undefined && seen.uid === uid && !isOlder(seen.resourceVersion, resourceVersion)) return;
      versions.set(key, { uid, resourceVersion, at: clock.monotonic() });
    },
    behindMs(key, seen) {
      const last = versions.get(key);
      if (last === undefined) return 0;
      const leftMs = MOST_MS - (clock.monotonic() - last.at);
      if (last.uid === seen.uid && isOlder(seen.resourceVersion, last.resourceVersion) && leftMs > 0) return leftMs;
      versions.delete(key);
      return 0;
    },
    forget: (key) => void versions.delete(key),
  };
}
