import { createHash } from 'node:crypto';
import { pipeline, Readable, type Transform } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import zlib from 'node:zlib';
import type { Parser as TarParser } from 'tar/parse';
import { messageOf } from '../../kit/errors.ts';
import { printableAscii } from '../../kit/printable.ts';
import type { LayerTree } from './layer-tree.ts';
import { formatOf, HEAD_BYTES } from './program-format.ts';

/** The first bytes of what is compressed. */
const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** What may be read, in bytes, and looked up. Each number goes down. */
export type Allowance = {
  /** Of layers as they are stored. */
  compressed: number;
  /** Of layers after decompression. */
  decompressed: number;
  /** Of memory for the names in the layers. */
  memory: number;
  /** Look-ups of a component of a path. */
  steps: number;
};

/** A layer that cannot be read, or not any further. The message goes on after the name of what was looked for. */
export class LayerProblem extends Error {
  override readonly name = 'LayerProblem';
}

/** How a layer is read. */
export type Reading = {
  readonly tree: LayerTree;
  readonly allowance: Allowance;
  /** Called after each piece; true ends the reading. */
  readonly isEnough: () => boolean;
};

const MIB = 1024 * 1024;

/** What is read of one platform of an image. */
export const PER_PLATFORM: Readonly<Allowance> = {
  compressed: 512 * MIB,
  decompressed: 4096 * MIB,
  memory: 64 * MIB,
  steps: 100_000,
};

/** Steps between two looks at the clock. */
const STEPS_AT_ONCE = 1000;

/**
 * Returns what counts a step of {@link createLayerTree}. Following links is synchronous, so that no timer can end it.
 *
 * @param check called now and then; it throws if it is too late
 */
export function createStep(allowance: Allowance, check: () => void): () => void {
  return () => {
    allowance.steps -= 1;
    if (allowance.steps < 0) {
      const steps = PER_PLATFORM.steps.toLocaleString('en-US');
      throw new LayerProblem(`was not reached within ${steps} look-ups along PATH and links`);
    }
    if (allowance.steps % STEPS_AT_ONCE === 0) check();
  };
}

/** Frames of zstd that hold no content, at the beginning of some layers (RFC 8878, section 3.1.2). */
const ZSTD_SKIPPABLE = Buffer.from([0x2a, 0x4d, 0x18]);

/**
 * Reads a layer into the tree, until it ends or enough is known. Nothing is kept but names, links and the formats of files.
 *
 * @param digest of the layer as it is stored. It can be checked only if all of the layer was read.
 * @returns whether it was read to its end
 * @throws LayerProblem, or what `chunks` throws
 */
export async function readLayer(chunks: AsyncIterable<Uint8Array>, digest: string, reading: Reading): Promise<boolean> {
  const { allowance, isEnough } = reading;
  const colon = digest.indexOf(':');
  const hash = createHash(digest.slice(0, colon));
  let isAtEnd = false;
  let failure: { readonly error: unknown } | undefined;

  async function* counted(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of source) {
        allowance.compressed -= chunk.byteLength;
        if (allowance.compressed < 0) throw limit(PER_PLATFORM.compressed, '');
        hash.update(chunk);
        yield chunk;
      }
      isAtEnd = true;
    } catch (error) {
      failure ??= { error };
      throw error;
    }
  }

  // Only these commands need the library, and it costs every start a little.
  const { Parser } = await import('tar/parse');
  const archive = createArchive(Parser, reading);
  try {
    for await (const piece of decompressed(counted(chunks))) {
      allowance.decompressed -= piece.byteLength;
      if (allowance.decompressed < 0) throw limit(PER_PLATFORM.decompressed, ' of decompressed layers');
      archive.write(piece);
      // Pieces can follow each other without a pause, and what they hold can be slow to read: then no deadline would be seen.
      await setImmediate();
      if (isEnough()) return false;
    }
    archive.end();
  } catch (error) {
    if (failure !== undefined) throw failure.error;
    if (error instanceof LayerProblem) throw error;
    throw new LayerProblem(`was not found: a layer cannot be decompressed (${printableAscii(messageOf(error), 100)})`);
  }
  if (isAtEnd && hash.digest('hex') !== digest.slice(colon + 1)) {
    throw new LayerProblem('was not found: a layer does not match its digest');
  }
  return true;
}

function limit(bytes: number, of: string): LayerProblem {
  return new LayerProblem(`was not reached within ${bytes / MIB} MiB${of}`);
}

/** Decompresses by the first bytes, as container runtimes do, whatever the media type says. */
async function* decompressed(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  let start = Buffer.alloc(0);
  while (start.length < ZSTD.length) {
    const next = await chunks.next();
    if (next.done === true) break;
    start = Buffer.concat([start, next.value]);
  }
  async function* whole(): AsyncGenerator<Uint8Array> {
    try {
      if (start.length > 0) yield start;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  }
  const isSkippable = ((start[0] ?? 0) & 0xf0) === 0x50 && start.subarray(1, 4).equals(ZSTD_SKIPPABLE);
  if (start.subarray(0, 4).equals(ZSTD) || isSkippable) yield* unzstd(whole());
  else if (start.subarray(0, 2).equals(GZIP)) yield* gunzip(whole());
  else yield* whole();
}

async function* gunzip(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const decoder = zlib.createGunzip({ chunkSize: 64 * 1024 });
  // Ending this generator destroys the decoder, and with it the source.
  pipeline(Readable.from(chunks, { objectMode: false, highWaterMark: 64 * 1024 }), decoder, () => undefined);
  for await (const piece of decoder) if (piece instanceof Uint8Array) yield piece;
}

/** A window of zstd takes as much memory; `zstd -19` uses 8 MiB. As a power of two. */
const WINDOW_LOG = 25;

type Decoder = Transform & { readonly bytesWritten: number };

/**
 * Decompresses all frames of zstd (RFC 8878), one after another: a decoder of Node.js ends with its first frame, and layers
 * that are made for lazy pulling (`zstd:chunked`) have a frame for each file, and some without content.
 *
 * @throws LayerProblem if this Node.js has no zstd; errors of the decoder; what `chunks` throws
 */
async function* unzstd(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
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

/** Longer names and targets are not of this world: Linux allows 4096 bytes. */
const LONGEST_NAME = 4096;

/** Feeds an archive to the tree. The library's own decompression is never reached. */
export function createArchive(Parser: typeof TarParser, { tree, allowance }: Omit<Reading, 'isEnough'>) {
  let problem: string | undefined;
  let hasEnd = false;
  let hasBegun = false;
  const parser = new Parser({
    // Longer extended headers are skipped.
    maxMetaEntrySize: 256 * 1024,
    onwarn: (code, message) => {
      const isEmpty = code === 'TAR_BAD_ARCHIVE' && hasEnd;
      if (['TAR_ENTRY_INVALID', 'TAR_BAD_ARCHIVE', 'TAR_ABORT'].includes(code) && !isEmpty) problem ??= String(message);
    },
  });
  parser.on('error', (error: unknown) => {
    problem ??= messageOf(error);
  });
  parser.on('nullBlock', () => {
    hasEnd = true;
  });
  // What the library does not know, such as a sparse file of GNU tar.
  parser.on('ignoredEntry', ({ path, type, meta }) => {
    if (meta) problem ??= 'the header of an entry is too large';
    else add(path, { kind: 'other', text: `of the type ${type} in its layer, which is not read` });
  });
  parser.on('entry', (entry) => {
    const { path, linkpath = '', mode = 0, size } = entry;
    const isExecutable = (mode & 0o111) !== 0;
    const isFile = ['File', 'OldFile', 'ContiguousFile'].includes(entry.type);
    // Other files cannot be what is started, and are no whiteouts; a layer may have hundreds of thousands of them.
    const isOfUse = isExecutable || path.includes('.wh.') || tree.isAwaited(path);
    const isWanted = isFile && path.length <= LONGEST_NAME && isOfUse;
    if (isWanted) {
      const head: Buffer[] = [];
      let length = 0;
      let isAdded = false;
      const finish = (): void => {
        if (isAdded) return;
        isAdded = true;
        add(path, { kind: 'file', isExecutable, format: formatOf(Buffer.concat(head, length)) });
      };
      const wanted = Math.min(HEAD_BYTES, size);
      entry.on('data', (data: Buffer) => {
        if (isAdded) return;
        const part = data.subarray(0, wanted - length);
        head.push(part);
        length += part.length;
        if (length === wanted) finish();
      });
      if (size === 0) finish();
      return void entry.resume();
    }
    entry.resume();
    if (entry.type === 'SymbolicLink' || entry.type === 'Link') {
      const isLong = linkpath.length > LONGEST_NAME;
      const kind = entry.type === 'Link' ? 'link' : 'symlink';
      add(path, isLong ? { kind: 'other', text: 'a link with a target that is too long' } : { kind, target: linkpath });
    } else if (entry.type === 'Directory' || entry.type === 'GNUDumpDir') add(path, { kind: 'directory' });
    else if (!isFile) add(path, { kind: 'other', text: `of the type ${entry.type} in its layer` });
  });

  function add(path: string, node: Parameters<LayerTree['add']>[1]): void {
    if (path.length > LONGEST_NAME) return;
    const before = tree.bytes();
    tree.add(path, node);
    allowance.memory -= tree.bytes() - before;
  }

  function refuse(): void {
    if (problem !== undefined) {
      throw new LayerProblem(`was not found: a layer is not a valid tar archive (${printableAscii(problem, 100)})`);
    }
    if (allowance.memory < 0) throw new LayerProblem('was not reached: the layers have too many entries');
  }

  /** The library throws for some archives, and warns of others. */
  function feed(work: () => void): void {
    try {
      work();
    } catch (error) {
      problem ??= messageOf(error);
    }
    refuse();
  }

  return {
    write(piece: Uint8Array) {
      const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
      if (!hasBegun) {
        hasBegun = true;
        const start = bytes.subarray(0, 4);
        if (start.subarray(0, 2).equals(GZIP) || start.equals(ZSTD)) problem ??= 'it is compressed twice';
        refuse();
      }
      feed(() => parser.write(bytes));
    },
    end() {
      feed(() => parser.end());
    },
  };
}
