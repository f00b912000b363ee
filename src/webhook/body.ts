import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { isObject, type JsonObject, parseJson } from '../kit/json.ts';
import { RequestError } from './reviewed.ts';
import { createScanner, type Structure } from './scan.ts';

/** What the bodies of requests may take. */
export type BodyLimits = Structure & {
  /** Bytes of one. */
  readonly size: number;
  /** Bytes of all that are being read or wait to be parsed: memory is small. */
  readonly total: number;
  /** Bytes from which on a body waits for a turn of its own. */
  readonly large: number;
  /** Milliseconds for one to arrive. */
  readonly time: number;
};

/** What is read of a request. */
export type BodySource = Readable & Pick<IncomingMessage, 'headers'>;

/**
 * Reads the JSON object in a request's body and hands it to `use`. Throws a RequestError for any other body, and for one over the
 * limits. Large ones are parsed and used one after the other, each in a turn of the event loop, so that small ones come between.
 */
export type BodyReader = <T>(request: BodySource, use: (body: JsonObject) => T) => Promise<T>;

/** Reads bodies that share one limit. */
export function createBodyReader({ size, total, large, time, ...structure }: BodyLimits): BodyReader {
  let held = 0;
  let lastTurn: Promise<void> = Promise.resolve();

  function bytesOf(request: BodySource): Promise<{ chunks: Buffer[]; counted: number }> {
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      const scan = createScanner(structure);
      let length = 0;
      // What is on its way is counted before it is there: what is refused need not be read.
      let counted = Number(request.headers['content-length'] ?? 0);
      held += counted;
      const timer = setTimeout(() => end(new RequestError(408, `no whole body within ${time} ms`)), time);
      const onData = (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        const more = Math.max(0, length - counted);
        counted += more;
        held += more;
        if (length > size) end(tooLarge());
        else if (held > total) end(tooMany());
        else judge(chunk);
      };
      const judge = (chunk: Buffer) => {
        try {
          scan(chunk);
        } catch (error) {
          end(error);
        }
      };
      const onEnd = () => end();
      // The client went away, or what it sends is no longer HTTP.
      const onClose = () => end(new RequestError(400, 'the body breaks off'));
      const end = (error?: unknown) => {
        clearTimeout(timer);
        request.off('data', onData).off('end', onEnd).off('close', onClose);
        if (error === undefined) return resolve({ chunks, counted });
        held -= counted;
        reject(error);
      };
      // `close` follows, and says enough.
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
    // What says so itself need not be read; a length that is not true is noticed either way.
    if (Number(request.headers['content-length'] ?? 0) > size) throw tooLarge();
    const { chunks, counted } = await bytesOf(request);
    try {
      if (counted > large) await turn();
      const value = parseJson(textOf(chunks));
      if (!isObject(value)) throw new RequestError(400, 'the body is no JSON object');
      return use(value);
    } finally {
      held -= counted;
    }
  };
}

/** Leaves the chunks to be collected. */
function textOf(chunks: Buffer[]): string {
  return Buffer.concat(chunks.splice(0)).toString();
}
