/** Functions that read objects of unknown shape: what the API server, a registry or an annotation sent. */
import { hash } from 'node:crypto';

export type JsonObject = Readonly<Record<string, unknown>>;

const EMPTY: JsonObject = Object.freeze({});

/** Whether a value is an object with named fields (not an array, not null). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the object at a field, or an empty object. */
export function objectAt(object: JsonObject, field: string): JsonObject {
  const value = object[field];
  return isObject(value) ? value : EMPTY;
}

/** Returns the objects in the list at a field; items that are not objects are left out. Undefined if the field holds no list. */
export function listAt(object: JsonObject, field: string): readonly JsonObject[] | undefined {
  const value = object[field];
  return Array.isArray(value) ? value.filter(isObject) : undefined;
}

/** Returns the string at a field, or undefined. */
export function stringAt(object: JsonObject, field: string): string | undefined {
  const value = object[field];
  return typeof value === 'string' ? value : undefined;
}

/** Returns the strings in the list at a field; other items are left out. Empty if the field holds no list. */
export function textsAt(object: JsonObject, field: string): string[] {
  const value = object[field];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** Returns the finite number at a field, or undefined. */
export function numberAt(object: JsonObject, field: string): number | undefined {
  const value = object[field];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** Returns the entries of the object at a field whose values are strings, for example `metadata.labels`. */
export function stringsAt(object: JsonObject, field: string): Readonly<Record<string, string>> {
  const found = objectAt(object, field);
  // Nearly always the case, and then no copy is needed.
  if (areStrings(found)) return found;
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function areStrings(object: JsonObject): object is Readonly<Record<string, string>> {
  for (const key in object) if (typeof object[key] !== 'string') return false;
  return true;
}

/** Whether two values of JSON have the same content. The order of fields does not count; a field that is undefined is a field. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one)) {
    return (
      Array.isArray(other) && one.length === other.length && one.every((item, index) => isSame(item, other[index]))
    );
  }
  if (!isObject(one) || !isObject(other)) return false;
  let count = 0;
  for (const field in one) {
    if (!Object.hasOwn(other, field) || !isSame(one[field], other[field])) return false;
    count += 1;
  }
  for (const _ in other) count -= 1;
  return count === 0;
}

/** Parses JSON text; returns undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses a text or body that should hold a JSON object; returns undefined for anything else. Never throws. */
export function parseObject(body: Uint8Array | string): JsonObject | undefined {
  const value = parseJson(typeof body === 'string' ? body : Buffer.from(body).toString('utf8'));
  return isObject(value) ? value : undefined;
}

/**
 * Returns a field as Go's JSON decoder (used by Docker and the kubelet) reads it: the case of the name does not matter,
 * null counts as absent, and the last of several fields with that name counts. Undefined if there is none.
 */
export function fieldOf(object: JsonObject, name: string): unknown {
  return fieldsOf(object, name).findLast((value) => value !== null);
}

/**
 * Returns all values that {@link fieldOf} chooses from. When Go decodes into a map, it reads them one after the other,
 * and null empties the map.
 */
export function fieldsOf(object: JsonObject, name: string): readonly unknown[] {
  const lower = name.toLowerCase();
  return Object.keys(object).flatMap((key) =>
    key.length === lower.length && key.toLowerCase() === lower ? [object[key]] : [],
  );
}

/**
 * Returns the fields of these names as {@link fieldOf} chooses them, in one pass: what a stranger sends may have hundreds of thousands
 * of others.
 *
 * @param names in lower case, as are those of the result
 */
export function onlyFields(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  const found = new Map<string, unknown>();
  for (const key of Object.keys(object)) {
    const lower = key.toLowerCase();
    const value = object[key];
    if (names.has(lower) && (value !== null || !found.has(lower))) found.set(lower, value);
  }
  return Object.fromEntries(found);
}

/** The length of a fingerprint in hexadecimal digits. Half of SHA-256: nobody finds two values with the same one. */
const FINGERPRINT = 32;

/**
 * Returns a short hash of a JSON value (SHA-256, cut to 128 bits, hexadecimal). The order of fields does not count, and a field
 * that is null, or an empty object or list, counts as absent: servers of different versions write such fields or leave them out.
 */
export function fingerprintOf(value: unknown): string {
  return sha256(canonical(value) ?? '').slice(0, FINGERPRINT);
}

/** Returns the SHA-256 of texts, one after the other, as 64 hexadecimal digits. */
export function sha256(...texts: readonly string[]): string {
  return hash('sha256', texts.join(''), 'hex');
}

/** Returns a value as JSON with its fields in order and without those that count as absent; undefined if it counts as absent. */
function canonical(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    return value.length === 0 ? undefined : `[${value.map((item: unknown) => canonical(item) ?? 'null').join()}]`;
  }
  if (!isObject(value)) return value === null ? undefined : JSON.stringify(value);
  const fields = Object.keys(value)
    .sort()
    .flatMap((field) => {
      const text = canonical(value[field]);
      return text === undefined ? [] : `${JSON.stringify(field)}:${text}`;
    });
  return fields.length === 0 ? undefined : `{${fields.join()}}`;
}
