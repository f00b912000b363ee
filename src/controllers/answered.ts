import type { Clock } from '../kit/clock.ts';
import { isOlder, type Store, type Stored } from '../kube/watch/store.ts';

/**
 * The versions that writes of this process made, until the watch shows them: until then the store is behind, and a decision
 * would be made of what was there before the write.
 */
export type Answered = {
  set(key: string, version: Stored): void;
  /** Milliseconds for which an object is to be left alone, as its event is on the way; 0: it is there. */
  behindMs(key: string, seen: Stored): number;
  forget(key: string): void;
};

/** Longer than this nothing is waited for: after a restored backup of etcd versions begin again, and no event comes. */
const MOST_MS = 30_000;

/** Creates the memory of it over a store. */
export function createAnswered(store: Pick<Store<Stored>, 'get'>, clock: Clock): Answered {
  const versions = new Map<string, Stored & { readonly at: number }>();
  return {
    set(key, { uid, resourceVersion }) {
      const seen = store.get(key);
      // The event is often faster than the answer.
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
