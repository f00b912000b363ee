/**
 * Creates a function that returns the same value for all values with the same JSON, so that the many objects of a big cluster
 * that are alike take the memory of one. The values must not be changed afterwards. At most `most` values are kept; then it starts
 * over, and later values are shared among themselves only. Values whose JSON is longer than `longest` characters are not kept: the
 * authors of pods choose them, and the pods of others must not pay for that.
 */
export function createShared(most: number, longest = 4_096): <T>(value: T) => T {
  const known = new Map<string, unknown>();
  return <T>(value: T): T => {
    if (value === undefined) return value;
    // The JSON of nothing else begins with this character.
    const key = typeof value === 'string' ? `=${value}` : JSON.stringify(value);
    if (key.length > longest) return value;
    const found = known.get(key);
    if (found !== undefined) return found as T;
    if (known.size >= most) known.clear();
    known.set(key, value);
    return value;
  };
}
