import { weightOf } from './weight.ts';

/**
 * Values whose JSON has more characters are not kept: strangers choose them, and others must not pay for that. Longer than the
 * labels, the images and the tolerations of nearly every pod.
 */
const LONGEST = 4_096;
/** Bytes of an entry of a map. */
const ENTRY = 64;

/**
 * Creates a function that returns the same value for all values with the same JSON, so that the many objects of a big cluster
 * that are alike take the memory of one. The values must not be changed afterwards. A value that was not asked for since half of
 * `most` was filled with others is forgotten: equal values that come later are shared among themselves only.
 *
 * @param most the most bytes that the kept values take, with the texts by which they are found
 */
export function createShared(most: number): <T>(value: T) => T {
  let young = new Map<string, unknown>();
  let old = new Map<string, unknown>();
  let bytes = 0;

  function keep(key: string, value: unknown): void {
    bytes += ENTRY + 2 * key.length + (typeof value === 'string' ? 0 : weightOf(value));
    young.set(key, value);
    if (bytes < most / 2) return;
    old = young;
    young = new Map();
    bytes = 0;
  }

  return <T>(value: T): T => {
    if (value === undefined) return value;
    // A huge value is not even written as JSON: the text would be as long as the value.
    if (hasMany(value)) return value;
    // The JSON of nothing else begins with this character.
    const key = typeof value === 'string' ? `=${value}` : JSON.stringify(value);
    if (key.length > LONGEST) return value;
    const found = young.get(key);
    if (found !== undefined) return found as T;
    const last = old.get(key) ?? value;
    keep(key, last);
    return last as T;
  };
}

/** More entries than any value has that is short enough to be kept. */
const MANY = 1_000;

function hasMany(value: unknown): boolean {
  if (typeof value !== 'object') return false;
  if (Array.isArray(value)) return value.length > MANY;
  let count = 0;
  for (const _ in value) if (++count > MANY) return true;
  return false;
}
