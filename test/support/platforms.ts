/** What tests need of the system they run on, and which of them are left out on Windows. */
import { readdirSync } from 'node:fs';
import { rename } from 'node:fs/promises';

/**
 * Why a test does not run on Windows: bash runs blocks and scripts; a symbolic link is replaced, as the kubelet does; a program is started by
 * its first line (`#!`); SIGTERM asks a process to end; a named pipe; a name that Windows does not allow.
 */
type Reason = 'bash' | 'link' | 'program' | 'signal' | 'pipe' | 'name';

/** For a test, or `before` of a suite: skips it on Windows. macOS runs it. */
export function needsPosix(context: Mocha.Context, _reason: Reason): void {
  if (process.platform === 'win32') context.skip();
}

/** Renames a file over another one. On Windows a file that is being read cannot be replaced, so it is tried again there. */
export async function replaceFile(from: string, to: string): Promise<void> {
  const isBusy = (error: unknown): false => {
    if (process.platform === 'win32' && error instanceof Error && 'code' in error && error.code === 'EPERM')
      return false;
    throw error;
  };
  while (!(await rename(from, to).then(() => true, isBusy))) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns the files below a folder of the repository, with `/` between the names on every system. */
export function filesBelow(folder: string): string[] {
  const root = new URL(`../../${folder}/`, import.meta.url);
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' });
  return names.map((name) => `${folder}/${name.replaceAll('\\', '/')}`).sort();
}
