/** Archives that are the same for the same contents: no time, no owner. */
import { gzipSync } from 'node:zlib';

export type Entry = { readonly name: string; readonly bytes: Uint8Array; readonly mode: number };

const BLOCK = 512;
/** The bytes of a name that a header has room for. */
const MOST_NAME = 100;

/** Returns a compressed ustar archive of files of the year 1970. Throws if a name takes more than 100 bytes. */
export function archive(entries: readonly Entry[]): Buffer {
  const parts = entries.flatMap((entry) => [header(entry), entry.bytes, padding(entry.bytes.length)]);
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]));
}

function header({ name, bytes, mode }: Entry): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  if (Buffer.byteLength(name) > MOST_NAME) throw new Error(`${name}: the name takes more than ${MOST_NAME} bytes`);
  block.write(name, 0);
  block.write(octal(mode, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(bytes.length, 11), 124);
  block.write(octal(0, 11), 136);
  block.write(' '.repeat(8), 148); // The checksum counts its own field as spaces.
  block.write('0', 156);
  block.write('ustar\u000000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)} `, 148);
  return block;
}

const padding = (length: number) => Buffer.alloc((BLOCK - (length % BLOCK)) % BLOCK);
