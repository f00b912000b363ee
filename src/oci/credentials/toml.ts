import { parse, TomlError } from 'smol-toml';
import { printableAscii } from '../../kit/printable.ts';
import type { Login } from './docker.ts';
import { SourceError } from './source-error.ts';

const SUFFIX = '.toml';
const KEYS = ['user', 'secret'] as const;

/**
 * Whether a name in a directory of logins is that of a login: `docker.io.toml`, with `user` and `secret`. Names that begin with a dot
 * are not, such as `..data` in a mounted Secret.
 */
export function isLoginFile(name: string): boolean {
  return name.endsWith(SUFFIX) && !name.startsWith('.');
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
