import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import { LayerProblem } from './layer-reading.ts';

/** A window of zstd takes as much memory; `zstd -19` uses 8 MiB. As a power of two. */
const WINDOW_LOG = 25;

type Decoder = Transform & { readonly bytesWritten: number };

/**
 * Decompresses all frames of zstd (RFC 8878), one after another: a decoder of Node.js ends with its first frame, and layers
 * that are made for lazy pulling (`zstd:chunked`) have a frame for each file, and some without content.
 *
 * @throws LayerProblem if this Node.js has no zstd; errors of the decoder; what `chunks` throws
 */
export async function* unzstd(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array();
  for (let isAtEnd = false; !isAtEnd || rest.length > 0; ) {
    const decoder = createDecoder();
    let [fed, chunk] = [0, rest];
    const feed = async (): Promise<void> => {
      for (;;) {
        if (chunk.length > 0) {
          fed += chunk.length;
          // Called when the chunk was used, or the frame has ended within it.
          await new Promise<void>((resolve) => decoder.write(chunk, () => resolve()));
          if (decoder.bytesWritten < fed || decoder.destroyed) return;
        }
        const next = isAtEnd ? undefined : await chunks.next();
        if (next === undefined || next.done === true) {
          isAtEnd = true;
          decoder.end();
          return;
        }
        chunk = next.value;
      }
    };
    feed().catch((error: unknown) => decoder.destroy(error instanceof Error ? error : new Error(String(error))));
    try {
      for await (const piece of decoder) if (piece instanceof Uint8Array) yield piece;
    } finally {
      decoder.destroy();
    }
    rest = chunk.subarray(chunk.length - (fed - decoder.bytesWritten));
    if (decoder.bytesWritten === 0 && rest.length > 0) throw new Error('not a frame of zstd');
  }
}

function createDecoder(): Decoder {
  // The types of Node.js 20 do not have it.
  const make: unknown = Reflect.get(zlib, 'createZstdDecompress');
  const parameter: unknown = Reflect.get(zlib.constants, 'ZSTD_d_windowLogMax');
  if (isMaker(make) && typeof parameter === 'number') {
    return make({ chunkSize: 64 * 1024, params: { [parameter]: WINDOW_LOG } });
  }
  const reason = `a layer is compressed with zstd, which Node.js ${process.version} cannot read: 22.15 or later can`;
  throw new LayerProblem(`was not found: ${reason}`);
}

function isMaker(value: unknown): value is (options: object) => Decoder {
  return typeof value === 'function';
}
