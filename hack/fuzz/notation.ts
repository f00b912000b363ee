import { isObject, type JsonObject } from '../../test/simulator/json.ts';

/** Bytes; the API server's limit for an object. */
const MOST_BYTES = 3 * 1024 * 1024;
const TIMES = /^×(\d{1,6})$/;

/**
 * Parses JSON with three additions, so that a short input, which can be mutated and shrunk, stands for a large one.
 * `"×9"` in a list repeats the item before it nine times; a field `"×9"` of an object becomes nine fields; `{"text":
 * …}` is its content as JSON text. Open brackets are closed. Returns undefined if the result is still not JSON.
 */
export function readNotation(text: string): unknown {
  const budget = { bytes: MOST_BYTES };
  try {
    // Written and parsed again, so that no two parts share an object, as in data from the network.
    return JSON.parse(JSON.stringify(expand(JSON.parse(closed(text)), budget)));
  } catch {
    // Not JSON, or nested more deeply than can be written.
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
  // A text within a text would be escaped again and again.
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

/** Like `JSON.parse`: a field named `__proto__` is an ordinary field. */
function objectOf(entries: readonly [string, unknown][]): JsonObject {
  return Object.fromEntries(entries);
}

/** Returns how often the item must be repeated, as far as the budget allows. */
function timesOf(mark: unknown, item: unknown, budget: { bytes: number }): number | undefined {
  const digits = typeof mark === 'string' ? TIMES.exec(mark)?.[1] : undefined;
  if (digits === undefined) return undefined;
  const size = (JSON.stringify(item) ?? '').length + 8;
  const count = Math.max(0, Math.min(Number(digits), Math.floor(budget.bytes / size)));
  budget.bytes -= count * size;
  return count;
}

/** Closes what the text leaves open, and removes a comma before that. */
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
