import { messageOf } from '../../kit/errors.ts';
import { printable } from '../../kit/printable.ts';
import { CacheFormatError } from '../../oci/cache/format.ts';
import { readNotes, removeNotes } from '../../oci/cache/kept-notes.ts';
import { createLies, type Lies, readLies } from '../../placement/lies/lies.ts';
import type { Context } from '../surroundings.ts';

type Place = Pick<Context, 'config' | 'note'>;

/**
 * Returns what the cache file that the configuration names has of images that lie, for a command without a cluster. Empty without such
 * a file; a note says if it cannot be used.
 */
export async function readKeptLies({ config, note, clock }: Place & Pick<Context, 'clock'>): Promise<Lies> {
  const lies = createLies();
  const { file } = config.images.cache;
  if (file === '') return lies;
  try {
    readLies(lies, await readNotes(file), clock.wall());
  } catch (error) {
    note(`without what the controller learned of images that lie: ${problemOf(file, error)}`);
  }
  return lies;
}

/** Removes what the cache file has of images that lie, if this process reaches it. A note says what was done, or why not. */
export async function removeKeptLies({ config, note }: Place): Promise<void> {
  const { file } = config.images.cache;
  if (file === '') return;
  try {
    if ((await removeNotes(file)) > 0) note(`removed from ${file}: what was learned of images that lie`);
  } catch (error) {
    note(`what was learned of images that lie was not removed from the cache file: ${problemOf(file, error)}`);
  }
}

function problemOf(file: string, error: unknown): string {
  const problem = error instanceof CacheFormatError ? `it is ${error.message}` : messageOf(error);
  return `images.cache.file: ${file}: ${printable(problem, 300)}`;
}
