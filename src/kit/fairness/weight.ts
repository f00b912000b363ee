import { isObject } from '../json.ts';

/** Bytes, about as V8 takes them: of a text before its characters, of an object or a list, and of each of their entries. */
const TEXT = 24;
const OBJECT = 32;
const ENTRY = 24;

/**
 * Returns about how many bytes of memory a value takes that came from JSON, or was made of such values: texts, numbers, lists and
 * objects. A value that is there twice counts twice. Stops at `most`: the result is then only known to be larger.
 */
export function weightOf(value: unknown, most = Number.POSITIVE_INFINITY): number {
  if (typeof value === 'string') return TEXT + value.length;
  let sum = OBJECT;
  if (Array.isArray(value)) {
    for (const item of value) {
      sum += ENTRY + weightOf(item, most - sum);
      if (sum > most) return sum;
    }
    return sum;
  }
  if (!isObject(value)) return 0;
  for (const field in value) {
    sum += ENTRY + field.length + weightOf(value[field], most - sum);
    if (sum > most) return sum;
  }
  return sum;
}
