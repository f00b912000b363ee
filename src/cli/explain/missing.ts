import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import { nearest } from '../../kit/nearest.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { isForbidden } from '../../kube/errors.ts';
import { find, readAll } from '../../kube/read.ts';
import { few } from '../../placement/reasons.ts';
import { KINDS, pathOf } from '../survey/kinds.ts';
import { kindHint } from './target.ts';

/** Returns one line that says that an object does not exist, and what exists instead. */
export async function describeMissing(
  client: ApiClient,
  { kind, namespace, name }: { readonly kind: string; readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<string> {
  const missing = `${kind === 'Pod' ? 'pod' : kind} ${namespace}/${name} does not exist`;
  try {
    if ((await find(client, `/api/v1/namespaces/${encodeURIComponent(namespace)}`, signal)) === undefined) {
      return `${missing}: there is no namespace ${namespace}${kind === 'Pod' ? kindHint(namespace) : ''}`;
    }
    const others = KINDS.filter((other) => other.kind !== kind);
    const found = await Promise.all(
      others.map(async (other) => {
        return (await find(client, pathOf(other.kind, namespace, name), signal)) && other;
      }),
    );
    const [instead] = found.flatMap((other) => other ?? []);
    const own = KINDS.find((each) => each.kind === kind);
    const pods = await namesOf(client, '/api/v1', 'pods', namespace, signal);
    if (instead !== undefined) {
      const its = pods.filter((pod) => pod.startsWith(`${name}-`));
      const has = its.length === 0 ? 'no pods' : `${its.length === 1 ? '1 pod' : `${its.length} pods`}: ${few(its)}`;
      return `${missing}: ${instead.kind} ${namespace}/${name} has ${has}; try explain ${instead.names[0]}/${name} -n ${namespace}`;
    }
    if (own === undefined || kind === 'Pod') {
      const near = nearest(name, pods);
      if (near !== undefined) return `${missing}; did you mean ${near}?`;
      return pods.length === 0 ? `${missing}: namespace ${namespace} has no pods` : missing;
    }
    const [short = '', plural = ''] = own.names;
    const same = await namesOf(client, own.path, plural, namespace, signal);
    const near = nearest(name, same);
    if (near !== undefined) return `${missing}; did you mean ${short}/${near}?`;
    return same.length === 0 ? `${missing}: namespace ${namespace} has no ${plural}` : missing;
  } catch (error) {
    // The hint needs rights that the command itself does not need.
    if (isForbidden(error)) return missing;
    throw error;
  }
}

function namesOf(
  client: ApiClient,
  path: string,
  plural: string,
  namespace: string,
  signal: AbortSignal,
): Promise<string[]> {
  const read = (object: JsonObject) => stringAt(objectAt(object, 'metadata'), 'name');
  return readAll(client, `${path}/namespaces/${encodeURIComponent(namespace)}/${plural}`, read, signal);
}
