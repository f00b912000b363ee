import { isObject, type JsonObject } from '../../test/support/cluster/json.ts';

/** Bytes; what the API server takes of an object. */
const MOST_BYTES = 3 * 1024 * 1024;
const TIMES = /^×(\d{1,6})$/;

/**
 * Reads JSON with three additions, so that a short input, which can be mutated and shrunk, stands for a large one: `"×9"` in
 * a list repeats what is before it nine times, a field `"×9"` of an object becomes nine fields, `{"text": …}` is the JSON of
 * what is in it as a text. Brackets that are not closed are. Undefined for what is no JSON even so.
 */
export function readNotation(text: string): unknown {
  const budget = { bytes: MOST_BYTES };
  try {
    // Written and read again: no part of what came over a wire is the same object as another.
    return JSON.parse(JSON.stringify(expand(JSON.parse(closed(text)), budget)));
  } catch {
    // No JSON, or nested deeper than can be written.
    return undefined;
  }
}

function expand(value: unknown, budget: { bytes: number }, inText = false): unknown {
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    for (const item of value) {
      const count = timesOf(item, list.at(-1), budget);
      if (count === undefined) list.push(expand(item, budget, inText));
      else for (let index = 0; index < count; index += 1) list.push(list.at(-1));
    }
    return list;
  }
  if (!isObject(value)) return value;
  // One in another would be of quotes that are escaped again and again.
  if (!inText && Object.keys(value).length === 1 && typeof value.text === 'object') {
    return JSON.stringify(expand(value.text, budget, true));
  }
  const entries = Object.entries(value).flatMap(([name, item]): [string, unknown][] => {
    const expanded = expand(item, budget, inText);
    const count = timesOf(name, expanded, budget);
    if (count === undefined) return [[name, expanded]];
    return Array.from({ length: count }, (_, index) => [`k${index}`, expanded]);
  });
  return objectOf(entries);
}

/** As `JSON.parse` makes it: a field named `__proto__` is one like any other. */
function objectOf(entries: readonly [string, unknown][]): JsonObject {
  return Object.fromEntries(entries);
}

/** How often the item is to be repeated, as far as the budget goes. */
function timesOf(mark: unknown, item: unknown, budget: { bytes: number }): number | undefined {
  const digits = typeof mark === 'string' ? TIMES.exec(mark)?.[1] : undefined;
  if (digits === undefined) return undefined;
  const size = (JSON.stringify(item) ?? '').length + 8;
  const count = Math.max(0, Math.min(Number(digits), Math.floor(budget.bytes / size)));
  budget.bytes -= count * size;
  return count;
}

/** The text with what it leaves open closed, without a comma before that. */
function closed(text: string): string {
  const open: string[] = [];
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === '\\') index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{') open.push('}');
    else if (character === '[') open.push(']');
    else if (character === '}' || character === ']') open.pop();
  }
  const rest = inString ? '"' : '';
  return open.length === 0 && rest === '' ? text : text.replace(/,$/, '') + rest + open.reverse().join('');
}
