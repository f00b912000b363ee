import { RequestError } from './reviewed.ts';

/** The limits for the structure of a JSON body. */
export type Structure = {
  /** The number of `{`, `[` and `,` outside strings. Each may become a value in memory that is many times larger than one byte. */
  readonly tokens: number;
  readonly depth: number;
};

/** Reads the bytes of a JSON text as they arrive. Throws a RequestError as soon as the text exceeds the limits. */
export type Scanner = (chunk: Uint8Array) => void;

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Creates the scanner for one body. It does not check whether the text is JSON; it only limits the cost of parsing it. */
export function createScanner({ tokens, depth }: Structure): Scanner {
  let [isFirst, isText, isEscaped] = [true, false, false];
  let [seen, deep] = [0, 0];

  return (chunk) => {
    if (isFirst && chunk.length > 0) {
      isFirst = false;
      if (chunk[0] !== OPEN_OBJECT) throw new RequestError(400, 'the body is not a JSON object');
    }
    // Every byte of every review comes by here: one loop within strings, one outside, and all that they change is local.
    let [values, level, isWithin, index] = [seen, deep, isText, isEscaped ? 1 : 0];
    while (index < chunk.length) {
      if (isWithin) {
        for (; index < chunk.length; index += 1) {
          const byte = chunk[index];
          if (byte === QUOTE) break;
          if (byte === BACKSLASH) index += 1;
        }
        if (index >= chunk.length) break;
        isWithin = false;
        index += 1;
      }
      for (; index < chunk.length; index += 1) {
        const byte = chunk[index] ?? 0;
        if (byte === QUOTE) {
          isWithin = true;
          index += 1;
          break;
        }
        if (byte === COMMA) values += 1;
        // Digits, colons and spaces come before the brackets, and are most of what is left.
        else if (byte < OPEN_LIST) continue;
        else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
          values += 1;
          level += 1;
          if (level > depth) throw new RequestError(413, `the body is nested more than ${depth} levels deep`);
        } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) level -= 1;
      }
    }
    // The last byte is a backslash, so the first one of the next chunk is escaped.
    isEscaped = index > chunk.length;
    [seen, deep, isText] = [values, level, isWithin];
    if (seen > tokens) throw new RequestError(413, `the body has more than ${tokens} values`);
  };
}
