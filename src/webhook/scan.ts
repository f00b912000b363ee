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

  /** Returns the index of the quote that ends the string around `from`, or the length of the chunk. */
  function endOfText(chunk: Uint8Array, from: number): number {
    for (let index = from; index < chunk.length; index += 1) {
      const byte = chunk[index];
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) {
        isText = false;
        return index;
      }
    }
    return chunk.length;
  }
  function count(byte: number | undefined): void {
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) deep += 1;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) deep -= 1;
    if (byte === OPEN_OBJECT || byte === OPEN_LIST || byte === COMMA) seen += 1;
    if (deep > depth) throw new RequestError(413, `the body is nested more than ${depth} levels deep`);
    if (seen > tokens) throw new RequestError(413, `the body has more than ${tokens} values`);
  }
  return (chunk) => {
    if (isFirst && chunk.length > 0) {
      isFirst = false;
      if (chunk[0] !== OPEN_OBJECT) throw new RequestError(400, 'the body is not a JSON object');
    }
    for (let index = 0; index < chunk.length; index += 1) {
      if (isText) index = endOfText(chunk, index);
      else if (chunk[index] === QUOTE) isText = true;
      else count(chunk[index]);
    }
  };
}
