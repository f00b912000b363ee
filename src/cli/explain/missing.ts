import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import { nearest } from '../../kit/nearest.ts';
import type { ApiClient } from '../../kube/client.ts';
import { ApiError } from '../../kube/errors.ts';
import { readAll } from '../../kube/list.ts';
import { find } from '../../kube/read.ts';
import { few } from '../../placement/reasons.ts';
import { KINDS } from './target.ts';

/** Returns one line that says that an object does not exist, and what exists instead. */
export async function describeMissing(
  client: ApiClient,
  { kind, namespace, name }: { readonly kind: string; readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<string> {
  const missing = `${kind === 'Pod' ? 'pod' : kind} ${namespace}/${name} does not exist`;
  try {
    if ((await find(client, `/api/v1/namespaces/${encodeURIComponent(namespace)}`, signal)) === undefined) {
      return `${missing}: there is no namespace ${namespace}`;
    }
    const others = KINDS.filter((other) => other.kind !== kind);
    const found = await Promise.all(
      others.map(async (other) => {
        const path = `${other.path}/namespaces/${encodeURIComponent(namespace)}/${other.names[1]}/${encodeURIComponent(name)}`;
        return (await find(client, path, signal)) && other;
      }),
    );
    const [instead] = found.flatMap((other) => other ?? []);
    const pods = await podsIn(client, namespace, signal);
    if (instead !== undefined) {
      const own = pods.filter((pod) => pod.name.startsWith(`${name}-`)).map((pod) => pod.name);
      const has = own.length === 0 ? 'no pods' : `${own.length === 1 ? '1 pod' : `${own.length} pods`}: ${few(own)}`;
      return `${missing}: ${instead.kind} ${namespace}/${name} has ${has}; try explain ${instead.names[0]}/${name} -n ${namespace}`;
    }
    const near = nearest(
      name,
      pods.map((pod) => pod.name),
    );
    if (near !== undefined) return `${missing}; did you mean ${near}?`;
    return pods.length === 0 ? `${missing}: namespace ${namespace} has no pods` : missing;
  } catch (error) {
    // The hint needs rights that the command itself does not need.
    if (error instanceof ApiError && error.status === 403) return missing;
    throw error;
  }
}

function podsIn(client: ApiClient, namespace: string, signal: AbortSignal): Promise<{ readonly name: string }[]> {
  const read = (object: JsonObject) => ({ name: stringAt(objectAt(object, 'metadata'), 'name') ?? '' });
  return readAll(client, `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`, read, signal);
}
