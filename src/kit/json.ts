/** Reading objects whose shape nobody guarantees: what the API server, a registry or an annotation sent. */

export type JsonObject = Readonly<Record<string, unknown>>;

const EMPTY: JsonObject = Object.freeze({});

/** Whether a value is an object with named fields (no array, not null). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object at a field, or an empty one. */
export function objectAt(object: JsonObject, field: string): JsonObject {
  const value = object[field];
  return isObject(value) ? value : EMPTY;
}

/** The objects in the list at a field; what is no object is left out. Undefined where the list itself is absent. */
export function listAt(object: JsonObject, field: string): readonly JsonObject[] | undefined {
  const value = object[field];
  return Array.isArray(value) ? value.filter(isObject) : undefined;
}

/** The string at a field, or undefined. */
export function stringAt(object: JsonObject, field: string): string | undefined {
  const value = object[field];
  return typeof value === 'string' ? value : undefined;
}

/** The finite number at a field, or undefined. */
export function numberAt(object: JsonObject, field: string): number | undefined {
  const value = object[field];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** The string-valued entries of the object at a field, as of `metadata.labels`. */
export function stringsAt(object: JsonObject, field: string): Readonly<Record<string, string>> {
  const found = objectAt(object, field);
  // As good as always, and then nothing needs to be copied.
  if (areStrings(found)) return found;
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function areStrings(object: JsonObject): object is Readonly<Record<string, string>> {
  for (const key in object) if (typeof object[key] !== 'string') return false;
  return true;
}

/** The value of JSON text, or undefined where it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object that a text or body holds as JSON; undefined where it holds anything else. Never throws. */
export function parseObject(body: Uint8Array | string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * A field as Go's JSON reads it, which is what Docker and the kubelet are made with: the case of its name does not
 * matter, null is as good as nothing, and of several the last counts. Undefined where there is none.
 */
export function fieldOf(object: JsonObject, name: string): unknown {
  return fieldsOf(object, name).findLast((value) => value !== null);
}

/** All that {@link fieldOf} chooses from: into a map, Go reads one after the other, and null empties it. */
export function fieldsOf(object: JsonObject, name: string): readonly unknown[] {
  const lower = name.toLowerCase();
  return Object.entries(object).flatMap(([key, value]) => (key.toLowerCase() === lower ? [value] : []));
}
