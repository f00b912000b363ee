import { isObject, type JsonObject, objectAt, stringAt } from '../kit/json.ts';
import type { ApiClient } from './api-client.ts';
import { isExpired, isGone } from './errors.ts';
import { type ListReceiver, type ReadListOptions, readList } from './watch/items.ts';

type ObjectReader = Pick<ApiClient, 'request'>;

/** Reads one object; undefined if it does not exist. Throws what the client throws for every other failure. */
export async function find(client: ObjectReader, path: string, signal?: AbortSignal): Promise<JsonObject | undefined> {
  try {
    const object = await client.request('get', path, { signal });
    return isObject(object) ? object : undefined;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** Reads one object; empty if the answer is not an object. Throws what the client throws, also if it does not exist. */
export async function get(client: ObjectReader, path: string, signal?: AbortSignal): Promise<JsonObject> {
  const object = await client.request('get', path, { signal });
  return isObject(object) ? object : {};
}

/** Reads the version of the API server (`v1.36.0`); empty if it does not report one. Throws what the client throws. */
export async function readServerVersion(client: ObjectReader, signal: AbortSignal): Promise<string> {
  return stringAt(await get(client, '/version', signal), 'gitVersion') ?? '';
}

const PAGE = 500;

/**
 * Reads a collection page by page and returns what `read` makes of each object; undefined is left out. `read` may see an object twice, if a
 * page is sent again, so it must not count or collect. No whole object is kept after its page, so that a big cluster fits into a small
 * process. `path` may include a query. Throws what the client throws.
 *
 * If the pages expire meanwhile, the list goes on with the current state of the collection, so that it ends however long its pages take; an
 * object that is created or deleted meanwhile may be missing. If the server gives no token for that, the list starts again from the
 * beginning, once.
 */
export async function readAll<T>(
  client: ObjectReader,
  path: string,
  read: (object: JsonObject) => T | undefined,
  signal: AbortSignal,
): Promise<T[]> {
  const found: T[] = [];
  let [token, isAgain] = ['', false];
  for (;;) {
    const before = found.length;
    const receiver: ListReceiver = {
      // The page may be sent again after it broke off.
      onMetadata: () => void found.splice(before),
      onItem(object) {
        const item = read(object);
        if (item !== undefined) found.push(item);
      },
    };
    try {
      token = await readPage(client, path, token, receiver, { signal });
      if (token === '') return found;
    } catch (error) {
      if (!isExpired(error)) throw error;
      // The API server returns the same token again only if using it would not help.
      const goesOn = error.continueToken !== '' && error.continueToken !== token;
      if (!goesOn && isAgain) throw error;
      isAgain ||= !goesOn;
      found.splice(goesOn ? before : 0);
      token = goesOn ? error.continueToken : '';
    }
  }
}

/** Reads the names of the objects of a collection; see {@link readAll}. */
export function readNames(client: ObjectReader, path: string, signal: AbortSignal): Promise<string[]> {
  return readAll(client, path, (object) => stringAt(objectAt(object, 'metadata'), 'name'), signal);
}

/**
 * Reads the page of a collection that a token names; an empty token: the first one; undefined: all of it in one piece. Returns the token
 * of the next page; empty: there is none. Throws what the client throws.
 */
export async function readPage(
  client: ObjectReader,
  path: string,
  token: string | undefined,
  { onMetadata, onItem }: ListReceiver,
  options: ReadListOptions,
): Promise<string> {
  let next = '';
  const query = `limit=${PAGE}${token ? `&continue=${encodeURIComponent(token)}` : ''}`;
  const receiver: ListReceiver = {
    onMetadata(metadata) {
      next = stringAt(metadata, 'continue') ?? '';
      onMetadata(metadata);
    },
    onItem,
  };
  await readList(client, token === undefined ? path : withQuery(path, query), receiver, options);
  return next;
}

/** Returns the version that a collection has now; undefined if the server names none. */
export async function versionNow(client: ObjectReader, path: string, signal: AbortSignal): Promise<string | undefined> {
  const list = await client.request('list', withQuery(path, 'limit=1'), { signal });
  return isObject(list) ? stringAt(objectAt(list, 'metadata'), 'resourceVersion') : undefined;
}

/** Adds a query to a path that may have one. */
export function withQuery(path: string, query: string): string {
  return query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`;
}
