import { isObject, type JsonObject, objectAt, parseObject, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { find } from '../../kube/read.ts';
import { FIELD_MANAGER, LIES_CONFIG_MAP } from '../../names.ts';
import { type Lies, readLies, writeShowing } from '../../placement/lies/lies.ts';

/** The entry of the ConfigMap with everything that was learned: one JSON object. */
const ENTRY = 'lies.json';

/** The ConfigMap with what was learned, as it was read. */
export type LiesConfigMap = { readonly object: JsonObject; readonly uid: string; readonly text: string };

type Place = { readonly client: Pick<ApiClient, 'request'>; readonly namespace: string };

const pathOf = (namespace: string) => `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps`;

/** Reads the ConfigMap; undefined if there is none. Throws what the client throws. */
export async function readConfigMap(
  { client, namespace }: Place,
  signal: AbortSignal,
): Promise<LiesConfigMap | undefined> {
  const object = await find(client, `${pathOf(namespace)}/${LIES_CONFIG_MAP}`, signal);
  if (object === undefined) return undefined;
  const uid = stringAt(objectAt(object, 'metadata'), 'uid') ?? '';
  return { object, uid, text: stringAt(objectAt(object, 'data'), ENTRY) ?? '' };
}

/** Adds what the ConfigMap has. Nothing in it is trusted: strange entries are left out. */
export function addFrom({ text }: LiesConfigMap, lies: Lies, nowMs: number): void {
  readLies(lies, Object.entries(parseObject(text) ?? {}), nowMs);
}

/** Returns the text that the ConfigMap should have. One entry stands on each line, so that a person can read it. */
export function textOf(lies: Pick<Lies, 'all'>): string {
  const lines = lies.all().map((showing) => {
    const [key, value] = writeShowing(showing);
    return `${JSON.stringify(key)}:${JSON.stringify(value)}`;
  });
  return lines.length === 0 ? '' : `{\n${lines.join(',\n')}\n}\n`;
}

/**
 * Writes the ConfigMap, and creates it where there is none. Returns its uid. Throws what the client throws, also if another writer has
 * changed it since it was read.
 */
export async function writeConfigMap(
  { client, namespace }: Place,
  read: LiesConfigMap | undefined,
  text: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const query = `?fieldManager=${FIELD_MANAGER}`;
  const data = { [ENTRY]: text };
  const metadata = {
    namespace,
    name: LIES_CONFIG_MAP,
    labels: { 'app.kubernetes.io/name': 'archaware-controller' },
  };
  const written =
    read === undefined
      ? await client.request('create', `${pathOf(namespace)}${query}`, {
          body: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data },
          signal,
        })
      : // Sending the resourceVersion back makes the server refuse the write if the object has changed.
        await client.request('update', `${pathOf(namespace)}/${LIES_CONFIG_MAP}${query}`, {
          body: { ...read.object, data: { ...objectAt(read.object, 'data'), ...data } },
          signal,
        });
  return isObject(written) ? stringAt(objectAt(written, 'metadata'), 'uid') : undefined;
}
