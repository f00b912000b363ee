import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { codeOf } from '../../kit/errors.ts';
import { printableAscii } from '../../kit/printable.ts';
import type { Login } from './docker.ts';
import { SourceError } from './source-error.ts';

const SUFFIX = '.toml';
const KEYS = ['user', 'secret'] as const;

/** The login in a file of the directory, or why the file cannot be used. */
export type TomlEntry =
  | { readonly file: string; readonly login: Login }
  | { readonly file: string; readonly error: SourceError };

/**
 * Reads a directory of logins with a file for each registry, for example `docker.io.toml` with `user` and `secret`.
 * Symbolic links are followed. Files with another ending are ignored, and so are names that begin with a dot (such as
 * `..data` in a mounted Secret).
 *
 * @throws SourceError if the directory cannot be read
 */
export async function readTomlDirectory(directory: string): Promise<TomlEntry[]> {
  const names = await readdir(directory).catch((error: unknown) => {
    throw new SourceError(`it cannot be read (${codeOf(error) || 'error'})`);
  });
  const files = names.filter((name) => name.endsWith(SUFFIX) && !name.startsWith('.')).sort();
  return Promise.all(
    files.map(async (name) => {
      const file = join(directory, name);
      try {
        const text = await readFile(file, 'utf8').catch((error: unknown) => {
          throw new SourceError(`it cannot be read (${codeOf(error) || 'error'})`);
        });
        return { file, login: parseTomlLogin(name, text) };
      } catch (error) {
        if (error instanceof SourceError) return { file, error };
        throw error;
      }
    }),
  );
}

/**
 * @param name of the file, which names the registry
 * @throws SourceError
 */
export function parseTomlLogin(name: string, text: string): Login {
  const pattern = name.slice(0, -SUFFIX.length).toLowerCase();
  if (!/^(?:[a-z0-9*?-]+(?:\.[a-z0-9*?-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/.test(pattern)) {
    throw new SourceError(`its name is not a host[:port] followed by ${SUFFIX}`);
  }
  const table = parseTable(text);
  const unknown = Object.keys(table).find((key) => !KEYS.some((known) => known === key));
  if (unknown !== undefined) {
    throw new SourceError(`it has an unknown key "${printableAscii(unknown, 60)}"; expected ${KEYS.join(' and ')}`);
  }
  const [username, password] = KEYS.map((key) => {
    const value = table[key];
    if (value === undefined) throw new SourceError(`it has no ${key}`);
    if (typeof value !== 'string' || value === '')
      throw new SourceError(`its ${key} must be a string that is not empty`);
    return value;
  });
  return { pattern, username: username ?? '', password: password ?? '' };
}

function parseTable(text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text);
  } catch (error) {
    // The parser's own message shows the line, which may be the secret.
    const where = error instanceof TomlError ? ` (line ${error.line})` : '';
    throw new SourceError(`it is not valid TOML${where}`);
  }
}
