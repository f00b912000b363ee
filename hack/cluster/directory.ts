import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A component's own folder. */
export interface Directory {
  readonly path: string;
  /** Removes a temporary directory; one that the caller named stays, with its logs. */
  remove(): Promise<void>;
}

const marker = '.archaware-test';

/**
 * Creates an empty directory: a temporary one, or the one at the path. In the latter, only files of an earlier start
 * are removed; it throws if the directory contains anything else.
 */
export async function emptyDirectory(kind: string, path?: string): Promise<Directory> {
  const made = path ?? (await mkdtemp(join(tmpdir(), `archaware-${kind}-`)));
  const entries = await readdir(made).catch((): string[] => []);
  if (entries.length > 0 && !entries.includes(marker)) throw new Error(`${made} is not empty and not ours`);
  const remove = async () => {
    await rm(made, { recursive: true, force: true });
    temporary.delete(made);
  };
  await remove();
  await mkdir(made, { recursive: true, mode: 0o700 });
  await writeFile(join(made, marker), '');
  if (path === undefined) removeAtExit(made);
  return { path: made, remove: async () => (path === undefined ? remove() : undefined) };
}

/** Temporary directories that must be removed when the process ends. */
const temporary = new Set<string>();
const removeAll = () => {
  // A process that was killed a moment ago may still be writing, so this retries.
  for (const path of temporary) rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
};

function removeAtExit(path: string): void {
  if (temporary.size === 0) {
    process.removeListener('exit', removeAll);
    process.on('exit', removeAll);
  }
  temporary.add(path);
}
