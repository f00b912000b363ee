import { isObject, type JsonObject, stringAt } from '../kit/json.ts';
import type { ApiClient } from './api-client.ts';
import { isGone } from './errors.ts';

type Reader = Pick<ApiClient, 'request'>;

/** Reads one object; undefined if it does not exist. Throws what the client throws for every other failure. */
export async function find(client: Reader, path: string, signal?: AbortSignal): Promise<JsonObject | undefined> {
  try {
    const object = await client.request('get', path, { signal });
    return isObject(object) ? object : undefined;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** Reads one object; empty if the answer is not an object. Throws what the client throws, also if it does not exist. */
export async function get(client: Reader, path: string, signal?: AbortSignal): Promise<JsonObject> {
  const object = await client.request('get', path, { signal });
  return isObject(object) ? object : {};
}

/** Reads the version of the API server (`v1.36.0`); empty if it does not report one. Throws what the client throws. */
export async function readServerVersion(client: Reader, signal: AbortSignal): Promise<string> {
  return stringAt(await get(client, '/version', signal), 'gitVersion') ?? '';
}
