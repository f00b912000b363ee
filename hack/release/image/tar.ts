import { Parser } from 'tar';

export type TarEntry = {
  /** Without ./ at its begin. */
  readonly path: string;
  /** Empty if it is not a regular file. */
  readonly bytes: Buffer;
};

/** Reads the entries of an archive whose paths are wanted, in their order. Throws if the archive is cut. */
export function tarEntries(archive: Buffer, isWanted: (path: string) => boolean = () => true): TarEntry[] {
  const entries: TarEntry[] = [];
  // Two blocks of zeros are an archive without entries, which the library does not take for one.
  if (archive[0] === 0) return entries;
  const parser = new Parser({ strict: true });
  parser.on('error', (error: unknown) => {
    throw error;
  });
  parser.on('entry', (entry) => {
    const path = entry.path.replace(/^\.?\//, '');
    if (!isWanted(path)) return entry.resume();
    const parts: Buffer[] = [];
    entry.on('data', (part: Buffer) => parts.push(part));
    return entry.on('end', () => entries.push({ path, bytes: Buffer.concat(parts) }));
  });
  parser.end(archive);
  return entries;
}
