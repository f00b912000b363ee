/** Archives that are the same for the same contents: no time, no owner. */
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';

type Entry = { readonly name: string; readonly bytes: Uint8Array; readonly mode: number };

const BLOCK = 512;

/** Returns a compressed ustar archive of files of the year 1970. Throws if a name is too long for it. */
export function archive(entries: readonly Entry[]): Buffer {
  const parts = entries.flatMap(({ name, bytes, mode }) => {
    const head = Buffer.alloc(BLOCK);
    const fields = { path: name, type: 'File', mode, size: bytes.length, uid: 0, gid: 0, mtime: new Date(0) } as const;
    if (new Header(fields).encode(head)) throw new Error(`${name}: the name is too long for the header of a file`);
    return [head, bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)];
  });
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]));
}
