import { type JsonObject, stringAt } from '../kit/json.ts';
import type { ApiClient } from './api-client.ts';
import { isExpired } from './errors.ts';
import { readList } from './watch/items.ts';

const PAGE = 500;

/** Reads all objects of a collection, whole, page by page. `path` may include a query. */
export function listAll(client: Pick<ApiClient, 'request'>, path: string, signal: AbortSignal): Promise<JsonObject[]> {
  return readAll(client, path, (object) => object, signal);
}

/**
 * Reads a collection page by page and returns what `read` makes of each object; undefined is left out. `read` may see an object
 * twice, if a page is sent again, so it must not count or collect. No whole object
 * is kept after its page, so that a big cluster fits into a small process. `path` may include a query. Throws what the
 * client throws.
 *
 * If the pages expire meanwhile, the list goes on with the current state of the collection, so that it ends however
 * long its pages take; an object that is created or deleted meanwhile may be missing. If the server gives no token for
 * that, the list starts again from the beginning, once.
 */
export async function readAll<T>(
  client: Pick<ApiClient, 'request'>,
  path: string,
  read: (object: JsonObject) => T | undefined,
  signal: AbortSignal,
): Promise<T[]> {
  try {
    return await pages(client, path, read, signal);
  } catch (error) {
    if (!isExpired(error)) throw error;
    return await pages(client, path, read, signal);
  }
}

async function pages<T>(
  client: Pick<ApiClient, 'request'>,
  path: string,
  read: (object: JsonObject) => T | undefined,
  signal: AbortSignal,
): Promise<T[]> {
  const found: T[] = [];
  const more = path.includes('?') ? '&' : '?';
  let token = '';
  do {
    const query = `limit=${PAGE}${token ? `&continue=${encodeURIComponent(token)}` : ''}`;
    let next = '';
    const before = found.length;
    const receiver = {
      onMetadata(metadata: JsonObject) {
        // The page may be sent again after it broke off.
        found.length = before;
        next = stringAt(metadata, 'continue') ?? '';
      },
      onItem(object: JsonObject) {
        const item = read(object);
        if (item !== undefined) found.push(item);
      },
    };
    try {
      await readList(client, `${path}${more}${query}`, receiver, { signal });
    } catch (error) {
      // The API server returns the same token again only if using it would not help.
      if (!(isExpired(error) && error.continueToken !== '' && error.continueToken !== token)) throw error;
      found.length = before;
      next = error.continueToken;
    }
    token = next;
  } while (token !== '');
  return found;
}
