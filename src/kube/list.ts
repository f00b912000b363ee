import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../placement/json.ts';
import type { ApiClient } from './client.ts';
import { isExpired } from './errors.ts';

const PAGE = 500;

/** All objects of a collection, page by page; `path` may hold a query. Starts anew, once, where the pages expire on the way. */
export async function listAll(
  client: Pick<ApiClient, 'request'>,
  path: string,
  signal: AbortSignal,
): Promise<JsonObject[]> {
  try {
    return await pages(client, path, signal);
  } catch (error) {
    if (!isExpired(error)) throw error;
    return pages(client, path, signal);
  }
}

async function pages(client: Pick<ApiClient, 'request'>, path: string, signal: AbortSignal): Promise<JsonObject[]> {
  const objects: JsonObject[] = [];
  let token = '';
  do {
    const query = `limit=${PAGE}${token ? `&continue=${encodeURIComponent(token)}` : ''}`;
    const page = await client.request('list', `${path}${path.includes('?') ? '&' : '?'}${query}`, { signal });
    const list = isObject(page) ? page : {};
    objects.push(...(listAt(list, 'items') ?? []));
    token = stringAt(objectAt(list, 'metadata'), 'continue') ?? '';
  } while (token !== '');
  return objects;
}
