import { type JsonObject, objectAt, stringAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { readAll } from '../kube/list.ts';
import { FIELD_MANAGER } from '../names.ts';

/** Reads the controller's Events of a namespace for which `isWanted` holds. `fields`: what they must have: `reason=WrongNode`. */
export function ownEvents(
  client: ApiClient,
  namespace: string,
  fields: string,
  signal: AbortSignal,
  isWanted: (event: JsonObject) => boolean = () => true,
): Promise<JsonObject[]> {
  const selector = encodeURIComponent(`${fields},reportingController=${FIELD_MANAGER}`);
  const path = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/events?fieldSelector=${selector}`;
  return readAll(client, path, (event) => (isWanted(event) ? event : undefined), signal);
}

/** Returns when what an Event says happened last, in milliseconds since the epoch; 0 if it does not say. */
export function eventTime(event: JsonObject): number {
  const text = stringAt(objectAt(event, 'series'), 'lastObservedTime') ?? stringAt(event, 'eventTime') ?? '';
  return Date.parse(text) || 0;
}
