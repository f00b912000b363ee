import { readFile, stat } from 'node:fs/promises';
import { codeOf, messageOf } from '../../kit/errors.ts';

const MAX_FILE = 1024 * 1024;

/** Returns undefined if the file does not exist. */
export async function readText(file: string): Promise<string | undefined> {
  try {
    const found = await stat(file);
    // Reading a pipe would never end.
    if (!found.isFile()) throw new Error('is not a file');
    if (found.size > MAX_FILE) throw new Error(`is larger than ${MAX_FILE} bytes`);
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Returns why a file cannot be used. */
export function reason(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'is not UTF-8';
  if (code !== '') return `cannot be read (${code})`;
  return messageOf(error);
}

/** Adds to an error where in a file it is. */
export function explained<T>(at: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${at}: ${messageOf(error)}`);
  }
}

/** A file, or a folder of certificates, that cannot be used or of which a part is ignored. */
export type FileProblem = { readonly file: string; readonly problem: string };

/** Returns what reports problems, each once until it is gone. */
export function reportOnce(report: (problem: FileProblem) => void): (problems: readonly FileProblem[]) => void {
  let before = new Set<string>();
  return (problems) => {
    const now = new Map(problems.map((each) => [`${each.file} ${each.problem}`, each]));
    for (const [key, problem] of now) if (!before.has(key)) report(problem);
    before = new Set(now.keys());
  };
}

/** Returns the function for a reload: one runs after the other, so that the last one to start decides. */
export function oneAfterTheOther<T>(load: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve();
  return () => {
    const result = running.then(load);
    running = result.catch(() => undefined);
    return result;
  };
}
