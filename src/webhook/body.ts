import type { IncomingMessage } from 'node:http';
import { isObject, type JsonObject, parseJson } from '../placement/json.ts';
import { RequestError } from './reviewed.ts';

/** What the bodies of requests may take. */
export type BodyLimits = {
  /** Bytes of one. */
  readonly size: number;
  /** Bytes of all that are being read: whoever reaches the port may send them, and our memory is small. */
  readonly total: number;
  /** Milliseconds for one to arrive. */
  readonly time: number;
};

/** Reads the JSON object in a request's body. Throws a RequestError for any other body, and for one over the limits. */
export type BodyReader = (request: IncomingMessage) => Promise<JsonObject>;

/** Reads bodies that share one limit. */
export function createBodyReader({ size, total, time }: BodyLimits): BodyReader {
  let held = 0;

  function bytesOf(request: IncomingMessage): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const timer = setTimeout(() => end(new RequestError(408, `no whole body within ${time} ms`)), time);
      const onData = (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        held += chunk.length;
        if (length > size) end(tooLarge());
        else if (held > total) end(new RequestError(503, 'too many large bodies at once'));
      };
      const onEnd = () => end();
      // The client went away, or what it sends is no longer HTTP.
      const onClose = () => end(new RequestError(400, 'the body breaks off'));
      const end = (error?: RequestError) => {
        clearTimeout(timer);
        held -= length;
        request.off('data', onData).off('end', onEnd).off('close', onClose);
        if (error !== undefined) reject(error);
        else resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
      };
      // `close` follows, and says enough.
      request.on('error', () => undefined);
      request.on('data', onData).on('end', onEnd).on('close', onClose);
    });
  }

  const tooLarge = () => new RequestError(413, `the body is larger than ${size} bytes`);

  return async (request) => {
    // What says so itself need not be read; a length that is not true is noticed either way.
    if (Number(request.headers['content-length'] ?? 0) > size) throw tooLarge();
    const bytes = await bytesOf(request);
    const value = parseJson(bytes.toString());
    if (!isObject(value)) throw new RequestError(400, 'the body is no JSON object');
    return value;
  };
}
