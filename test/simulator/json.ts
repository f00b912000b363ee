/**
 * Reading and changing JSON objects without casts. What is stored is never changed in place: {@link assign} copies the
 * way down to what it sets, so an object that was handed out stays what it was.
 */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value as an object; anything else reads as an empty one. */
export function object(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** The value as a list; anything else reads as an empty one. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of a list. */
export function objects(value: unknown): readonly JsonObject[] {
  return list(value).filter(isObject);
}

/** The value as a string; anything else reads as the empty one. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The value at a path of field names, and of indexes of lists, or undefined. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value;
  for (const step of path) {
    if (Array.isArray(current)) current = current[Number(step)];
    else if (isObject(current) && Object.hasOwn(current, step)) current = current[step];
    else return undefined;
  }
  return current;
}

/** A copy with the value set at the path; undefined removes it. */
export function assign(target: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [name, ...rest] = path;
  if (name === undefined) return target;
  const copy = { ...target };
  const next = rest.length === 0 ? value : assign(object(target[name]), rest, value);
  if (next === undefined) delete copy[name];
  else copy[name] = next;
  return copy;
}

/** Equal as JSON: the order of fields does not matter, absent and null differ. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => equal(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]))
  );
}

/** Maps whose empty form Go's `omitempty` leaves out. */
const MAPS = new Set(['labels', 'annotations', 'nodeSelector', 'matchLabels', 'data', 'capacity', 'allocatable']);

/**
 * The object as the typed server would write it: no nulls, no empty lists, no empty maps where a map is meant, and in
 * taints and tolerations no empty strings. (`emptyDir: {}` is a pointer and stays.)
 */
export function normalise(value: unknown, name = '', inTaints = false): unknown {
  if (Array.isArray(value)) {
    const taints = name === 'tolerations' || name === 'taints';
    return value.map((item) => normalise(item, '', taints));
  }
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const [key, field] of Object.entries(value)) {
    if (field === null || field === undefined) continue;
    if (Array.isArray(field) && field.length === 0) continue;
    if (MAPS.has(key) && isObject(field) && Object.keys(field).length === 0) continue;
    if (inTaints && field === '') continue;
    result[key] = typeof field === 'object' ? normalise(field, key) : field;
  }
  return result;
}
