import { isObject, type JsonObject, parseJson, stringAt } from '../kit/json.ts';
import type { ApiClient, BodyReader } from './api-client.ts';
import { ConnectionError, isGone } from './errors.ts';
import { withoutManagedFields } from './watch/lines.ts';

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

/**
 * Does the same for an object that may be large: `managedFields`, which grow with it, are cut out before it is parsed, unless
 * archaware is in them.
 */
export async function findLarge(client: Reader, path: string, signal: AbortSignal): Promise<JsonObject | undefined> {
  let object: JsonObject | undefined;
  // Each attempt has pieces of its own: those of an answer that broke off are not part of the next one.
  const reader = (): BodyReader => {
    const pieces: Buffer[] = [];
    return {
      take: (piece) => void pieces.push(piece),
      end() {
        const parsed = parseJson(withoutManagedFields(Buffer.concat(pieces)));
        if (!isObject(parsed)) throw new ConnectionError(`get ${path}: the answer is not complete`);
        object = parsed;
      },
    };
  };
  try {
    const whole = await client.request('get', path, { signal, reader });
    // A client that does not give pieces gives the whole object.
    return isObject(whole) ? whole : object;
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
