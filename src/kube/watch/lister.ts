import { type JsonObject, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../api-client.ts';
import { isExpired } from '../errors.ts';
import { readPage, versionNow } from '../list.ts';
import type { ListReceiver } from './items.ts';
import { withoutManagedFields } from './lines.ts';
import { isOlder } from './store.ts';

type ListerOptions = {
  readonly client: ApiClient;
  /** The collection; it may include a query. */
  readonly path: string;
  /** Stores an object and returns its key. `reset`: the stored objects may be newer than the collection itself. */
  readonly keep: (object: JsonObject, reset: boolean) => string;
};

type Progress = { token: string; version: string; reset: boolean; readonly keys: Set<string> };

/** After its pages expired this often, the collection is read in one piece, as client-go does. */
const EXPIRIES = 2;
/** Milliseconds for reading a collection in one piece. */
const WHOLE_MS = 10 * 60_000;

/** Creates a reader of a collection, page by page. Nothing is sent before the first `read`. */
export function createLister({ client, path, keep }: ListerOptions) {
  let progress: Progress | undefined;
  let expiries = 0;

  return {
    /**
     * Reads the collection to its end; returns its version and its keys. Called again after it threw, it goes on with the
     * page that failed, unless the pages have expired. `last`: the last version of the collection that was seen.
     */
    async read(last: string, signal: AbortSignal): Promise<{ version: string; keys: ReadonlySet<string> }> {
      progress ??= { token: '', version: '', reset: false, keys: new Set() };
      const now = progress;
      const receiver: ListReceiver = {
        onMetadata(metadata) {
          // A first page that broke off is requested again as a new state of the collection: what was seen of the old one counts
          // no more. Later pages belong to one state, however often they are requested.
          if (now.token === '') {
            now.keys.clear();
            now.reset = false;
          }
          now.version = stringAt(metadata, 'resourceVersion') ?? now.version;
          // The version is older than the last one seen: etcd was restored from a backup, and every object is back in its
          // state of then.
          now.reset ||= isOlder(now.version, last);
        },
        onItem: (object) => void now.keys.add(keep(object, now.reset)),
      };
      do {
        const isWhole = now.token === '' && expiries >= EXPIRIES;
        const how = { signal, textOf: withoutManagedFields, ...(isWhole ? { completeMs: WHOLE_MS } : {}) };
        try {
          now.token = await readPage(client, path, isWhole ? undefined : now.token, receiver, how);
        } catch (error) {
          if (isExpired(error)) {
            expiries += 1;
            progress = undefined;
          }
          throw error;
        }
      } while (now.token !== '');
      progress = undefined;
      return now;
    },
    /**
     * Whether the server's version is older than the last one seen: etcd was restored from a backup. A watch from `last`
     * would be silent then, and miss what happens until the server reaches that version again.
     */
    async wentBack(last: string, signal: AbortSignal): Promise<boolean> {
      const version = await versionNow(client, path, signal);
      return version !== undefined && isOlder(version, last);
    },
    /** Call when the version that was read had expired before it could be watched. */
    expired(): void {
      expiries += 1;
    },
    /** Call when the version that was read could be watched. */
    watched(): void {
      expiries = 0;
    },
  };
}
