import { type JsonObject, objectAt, stringAt } from '../kit/json.ts';

/** Returns when what an Event says happened last, in milliseconds since the epoch; 0 if it does not say. */
export function eventTime(event: JsonObject): number {
  const text = stringAt(objectAt(event, 'series'), 'lastObservedTime') ?? stringAt(event, 'eventTime') ?? '';
  return Date.parse(text) || 0;
}
