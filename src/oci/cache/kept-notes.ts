import { randomBytes } from 'node:crypto';
import { open, rename, unlink } from 'node:fs/promises';
import { codeOf } from '../../kit/errors.ts';
import { isOrdinary } from './cache-file.ts';
import { CacheFormatError, MAX_FILE, type Note, splitNotes } from './format.ts';
import { sealed, unsealed } from './seal.ts';

/**
 * Returns the notes of a cache file; none if there is no such file.
 *
 * @throws CacheFormatError if the controller would not use the file, and what the file system throws
 */
export async function readNotes(file: string): Promise<readonly Note[]> {
  return (await read(file))?.notes ?? [];
}

/**
 * Removes the notes of a cache file, and keeps everything else. Returns how many there were. Nothing else may write the file meanwhile.
 *
 * @throws as {@link readNotes}
 */
export async function removeNotes(file: string): Promise<number> {
  const found = await read(file);
  if (found === undefined || found.notes.length === 0) return 0;
  const { notes, rest, owner } = found;
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      for (const piece of sealed([rest])) await handle.writeFile(piece);
      const { uid, gid } = await handle.stat();
      // Otherwise the controller could not read what a root user has written.
      if (uid !== owner.uid || gid !== owner.gid) await handle.chown(owner.uid, owner.gid);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  return notes.length;
}

type Found = ReturnType<typeof splitNotes> & { readonly owner: { readonly uid: number; readonly gid: number } };

async function read(file: string): Promise<Found | undefined> {
  try {
    if (!(await isOrdinary(file))) return undefined;
    const handle = await open(file, 'r');
    try {
      const { size, uid, gid } = await handle.stat();
      if (size > MAX_FILE) throw new CacheFormatError(`larger than ${MAX_FILE} bytes`);
      const text = await unsealed(await handle.readFile());
      if (text === undefined) throw new CacheFormatError('damaged: its checksum is missing or wrong');
      return { ...splitNotes(text), owner: { uid, gid } };
    } finally {
      await handle.close();
    }
  } catch (error) {
    // The configuration of a controller may name a directory that only its container has.
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return undefined;
    throw error;
  }
}
