import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { isObject, type JsonObject, parseJson } from '../kit/json.ts';

/** The outcome of a review, and the AdmissionReview to send, as JSON. */
export type Reviewed = {
  readonly outcome: 'patched' | 'gated' | 'unchanged' | 'rejected' | 'error';
  readonly text: string;
};

/** A request that cannot be answered with an AdmissionReview. The message says why. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  /** The HTTP status of the answer, from 400 on. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

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

/** The limits for the bodies of requests. */
export type BodyLimits = Structure & {
  /** Bytes of one body. */
  readonly size: number;
  /** Bytes of all bodies that are being read or wait to be parsed, because memory is small. */
  readonly total: number;
  /** Bytes from which on a body counts as large and is parsed in a turn of its own. */
  readonly large: number;
  /** Milliseconds for one body to arrive. */
  readonly time: number;
};

/** The part of a request that is read. */
type BodySource = Readable & Pick<IncomingMessage, 'headers'>;

/**
 * Reads the JSON object in a request's body and passes it to `use`. Throws a RequestError for any other body, and for one over the
 * limits. Large bodies are parsed and used one after the other, each in its own turn of the event loop, so that small bodies are
 * handled in between.
 */
export type ReviewBodyReader = <T>(request: BodySource, use: (body: JsonObject) => T) => Promise<T>;

/** Creates a reader whose bodies share the limits. */
export function createBodyReader({ size, total, large, time, ...structure }: BodyLimits): ReviewBodyReader {
  let held = 0;
  let lastTurn: Promise<void> = Promise.resolve();

  function bytesOf(request: BodySource): Promise<{ chunks: Buffer[]; counted: number }> {
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      const scan = createScanner(structure);
      let length = 0;
      // The announced length is counted before the body arrives, so that a refused body need not be read.
      let counted = Number(request.headers['content-length'] ?? 0);
      held += counted;
      const onLate = () => end(new RequestError(408, `the body was not complete within ${time} ms`));
      const timer = setTimeout(onLate, time).unref();
      const onData = (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        const more = Math.max(0, length - counted);
        counted += more;
        held += more;
        if (length > size) return end(tooLarge());
        if (held > total) return end(tooMany());
        try {
          scan(chunk);
        } catch (error) {
          end(error);
        }
      };
      const onEnd = () => end();
      // The client closed the connection, or what it sends is no longer HTTP.
      const onClose = () => end(new RequestError(400, 'the body ended too early'));
      const end = (error?: unknown) => {
        clearTimeout(timer);
        request.off('data', onData).off('end', onEnd).off('close', onClose);
        if (error === undefined) return resolve({ chunks, counted });
        held -= counted;
        reject(error);
      };
      // `close` follows and is handled.
      request.on('error', () => undefined);
      request.on('data', onData).on('end', onEnd).on('close', onClose);
      if (held > total) end(tooMany());
    });
  }

  const tooMany = () => new RequestError(503, 'too many large bodies at once');
  const tooLarge = () => new RequestError(413, `the body is larger than ${size} bytes`);

  function turn(): Promise<void> {
    lastTurn = lastTurn.then(() => new Promise(setImmediate));
    return lastTurn;
  }

  return async (request, use) => {
    // A body that announces itself as too large need not be read. A false length is noticed while reading.
    if (Number(request.headers['content-length'] ?? 0) > size) throw tooLarge();
    const { chunks, counted } = await bytesOf(request);
    try {
      if (counted > large) await turn();
      const value = parseJson(textOf(chunks));
      if (!isObject(value)) throw new RequestError(400, 'the body is not a JSON object');
      return use(value);
    } finally {
      held -= counted;
    }
  };
}

function textOf(chunks: Buffer[]): string {
  const all = chunks.splice(0);
  const [first] = all;
  return (all.length === 1 && first !== undefined ? first : Buffer.concat(all)).toString();
}
