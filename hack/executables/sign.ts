/**
 * Signatures of executables. macOS on arm64 starts no executable without one. An ad hoc signature proves nothing about the author: it is a
 * list of hashes of the pages, in the form of Apple's cs_blobs.h. Windows starts executables without a signature; the one of Node.js
 * no longer fits once something is injected.
 */
import { createHash } from 'node:crypto';
import { machCommands } from './mach-o.ts';

/** The pages that are hashed; another size than that of the processor's pages. */
const PAGE = 4096;
const HASH_SIZE = 32;
const SIGNATURE_COMMAND = 0x1d;
const SIGNATURE_COMMAND_SIZE = 16;
const SUPER_BLOB_SIZE = 20;
const CODE_DIRECTORY_SIZE = 88;
/** Ad hoc, and made by a tool that builds the file, which later tools may replace. */
const FLAGS = 0x2_0002;

/** Returns a Mach-O executable of 64 bits with an ad hoc signature. Throws if it has a signature, or no place for the load command. */
export function signedAdHoc(unsigned: Buffer, identifier: string): Buffer {
  const { commands, end } = machCommands(unsigned);
  if (commands.some(({ command }) => command === SIGNATURE_COMMAND)) throw new Error('it already has a signature');
  const link = commands.find(({ segment }) => segment?.name === '__LINKEDIT');
  const text = commands.find(({ segment }) => segment?.name === '__TEXT');
  const firstSection = Math.min(
    ...commands.flatMap(({ segment }) => segment?.sections.map(({ offset }) => offset || Infinity) ?? []),
  );
  if (link?.segment === undefined || text?.segment === undefined) throw new Error('__LINKEDIT or __TEXT is missing');
  if (end + SIGNATURE_COMMAND_SIZE > firstSection) throw new Error('no place for the load command of a signature');

  const codeLimit = Math.ceil(unsigned.length / 16) * 16;
  const name = Buffer.from(`${identifier}\0`);
  const pages = Math.ceil(codeLimit / PAGE);
  const hashOffset = CODE_DIRECTORY_SIZE + name.length;
  const directorySize = hashOffset + pages * HASH_SIZE;
  const size = SUPER_BLOB_SIZE + directorySize;

  const signed = Buffer.alloc(codeLimit + size);
  unsigned.copy(signed);
  signed.writeUInt32LE(signed.readUInt32LE(16) + 1, 16);
  signed.writeUInt32LE(signed.readUInt32LE(20) + SIGNATURE_COMMAND_SIZE, 20);
  for (const [index, value] of [SIGNATURE_COMMAND, SIGNATURE_COMMAND_SIZE, codeLimit, size].entries()) {
    signed.writeUInt32LE(value, end + index * 4);
  }
  const inFile = codeLimit + size - link.segment.fileOffset;
  const memoryPage = 0x4000;
  signed.writeBigUInt64LE(BigInt(Math.ceil(inFile / memoryPage) * memoryPage), link.offset + 32);
  signed.writeBigUInt64LE(BigInt(inFile), link.offset + 48);

  // The signature itself is big-endian. A super blob with one entry, the code directory.
  const words = (values: readonly number[], offset: number) => {
    for (const [index, value] of values.entries()) signed.writeUInt32BE(value, offset + index * 4);
  };
  words([0xfade_0cc0, size, 1, 0, SUPER_BLOB_SIZE], codeLimit);
  const directory = codeLimit + SUPER_BLOB_SIZE;
  const version = 0x2_0400;
  words([0xfade_0c02, directorySize, version, FLAGS, hashOffset, CODE_DIRECTORY_SIZE, 0, pages, codeLimit], directory);
  // The size of a hash, SHA-256, no platform, and the binary logarithm of the page.
  signed.set([HASH_SIZE, 2, 0, Math.log2(PAGE)], directory + 36);
  // Up to here zeros: scatter, team, and the limit of large files. Then the segment with code, of a main executable.
  signed.writeBigUInt64BE(BigInt(text.segment.fileOffset), directory + 64);
  signed.writeBigUInt64BE(BigInt(text.segment.fileSize), directory + 72);
  signed.writeBigUInt64BE(1n, directory + 80);
  name.copy(signed, directory + CODE_DIRECTORY_SIZE);
  for (let page = 0; page < pages; page += 1) {
    const bytes = signed.subarray(page * PAGE, Math.min((page + 1) * PAGE, codeLimit));
    createHash('sha256')
      .update(bytes)
      .digest()
      .copy(signed, directory + hashOffset + page * HASH_SIZE);
  }
  return signed;
}

/** Returns a Windows executable without its Authenticode signature, which stands at its end. */
export function withoutAuthenticode(executable: Buffer): Buffer {
  const entry = executable.readUInt32LE(0x3c) + 24 + 112 + 4 * 8;
  const [offset, size] = [executable.readUInt32LE(entry), executable.readUInt32LE(entry + 4)];
  if (size === 0) return executable;
  if (offset + size !== executable.length) throw new Error('the signature is not at the end of the file');
  const unsigned = Buffer.from(executable.subarray(0, offset));
  unsigned.fill(0, entry, entry + 8);
  return unsigned;
}
