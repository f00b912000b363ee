/** An object out of JSON that somebody else wrote. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is an object with named fields (no array, not null). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
