import { isObject, type JsonObject, objectAt } from '../kit/json.ts';
import { FIELD_MANAGER } from '../names.ts';
import type { ApiClient } from './api-client.ts';
import { ApiError, isGone } from './errors.ts';
import { find } from './read.ts';

/** Opens a Secret that replicas share. If the program creates it, its type is `Opaque`. */
export function secretAt(client: ApiClient, namespace: string, name: string) {
  const collection = `/api/v1/namespaces/${namespace}/secrets`;
  const query = `?fieldManager=${FIELD_MANAGER}`;
  return {
    /** Reads the Secret; undefined if it does not exist. Throws what the client throws. */
    read: (signal: AbortSignal): Promise<JsonObject | undefined> => find(client, `${collection}/${name}`, signal),
    /**
     * Sets these entries (removes an entry whose value is undefined) and leaves the others. Returns the Secret after the
     * write, or undefined if another writer has changed it since it was read.
     */
    async write(
      read: JsonObject | undefined,
      entries: Readonly<Record<string, string | undefined>>,
      signal: AbortSignal,
    ): Promise<JsonObject | undefined> {
      const data: Record<string, unknown> = { ...objectAt(read ?? {}, 'data') };
      for (const [entry, value] of Object.entries(entries)) {
        if (value === undefined) delete data[entry];
        else data[entry] = Buffer.from(value).toString('base64');
      }
      try {
        const written =
          read === undefined
            ? await client.request('create', `${collection}${query}`, {
                body: { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { namespace, name }, data },
                signal,
              })
            : // Sending the resourceVersion back makes the server refuse the write if the Secret has changed.
              await client.request('update', `${collection}/${name}${query}`, { body: { ...read, data }, signal });
        return isObject(written) ? written : undefined;
      } catch (error) {
        if (isGone(error) || (error instanceof ApiError && error.status === 409)) return undefined;
        throw error;
      }
    },
  };
}

/** Returns the text of a Secret's entry; undefined if it is absent or empty. */
export function entryOf(secret: JsonObject, entry: string): string | undefined {
  const encoded = objectAt(secret, 'data')[entry];
  const text = typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString() : '';
  return text === '' ? undefined : text;
}
