/** Reads tar archives: ustar, with the long names of pax and GNU. */

export type TarEntry = {
  /** Without ./ at its begin. */
  readonly path: string;
  /** A part of the archive; empty for what is no regular file. */
  readonly bytes: Buffer;
};

const BLOCK = 512;

/** Yields the entries in their order. Throws if the archive is cut. */
export function* tarEntries(archive: Buffer): Generator<TarEntry> {
  let longName: string | undefined;
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const header = archive.subarray(at, at + BLOCK);
    // Two blocks of zeros end an archive.
    if (header[0] === 0) return;
    const size = sizeOf(header);
    const bytes = archive.subarray(at + BLOCK, at + BLOCK + size);
    if (bytes.length < size) throw new Error(`the archive ends within ${nameOf(header)}`);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    const type = String.fromCharCode(header[156] ?? 0);
    if (type === 'x') longName = paxPath(bytes) ?? longName;
    else if (type === 'L') longName = textOf(bytes);
    else if (type !== 'g' && type !== 'K') {
      const regular = type === '0' || type === '\0' || type === '7';
      yield { path: (longName ?? nameOf(header)).replace(/^\.?\//, ''), bytes: regular ? bytes : Buffer.alloc(0) };
      longName = undefined;
    }
  }
}

function nameOf(header: Buffer): string {
  const name = textOf(header.subarray(0, 100));
  const isUstar = header.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = isUstar ? textOf(header.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** Octal digits; GNU writes large sizes as a binary number with the highest bit set. */
function sizeOf(header: Buffer): number {
  const field = header.subarray(124, 136);
  if (((field[0] ?? 0) & 0x80) !== 0) return Number(field.readBigUInt64BE(4));
  return Number.parseInt(textOf(field).trim() || '0', 8);
}

/** The path in the records of a pax header: LENGTH KEY=VALUE, where the length counts bytes. */
function paxPath(records: Buffer): string | undefined {
  for (let at = 0; at < records.length; ) {
    const space = records.indexOf(' ', at);
    const length = Number(records.toString('latin1', at, space));
    if (space === -1 || !(length > 0)) return undefined;
    const [, path] = /^path=([\s\S]*)\n$/.exec(records.toString('utf8', space + 1, at + length)) ?? [];
    if (path !== undefined) return path;
    at += length;
  }
  return undefined;
}

function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end === -1 ? field.length : end);
}
