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
