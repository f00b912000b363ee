import { printableAscii } from '../../kit/printable.ts';
import { parseToml } from '../endpoints/toml-table.ts';
import type { Login } from './docker.ts';

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
 * @throws Error
 */
export function parseTomlLogin(name: string, text: string): Login {
  const pattern = name.slice(0, -SUFFIX.length).toLowerCase();
  if (!/^(?:[a-z0-9*?-]+(?:\.[a-z0-9*?-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/.test(pattern)) {
    throw new Error(`its name is not a host[:port] followed by ${SUFFIX}`);
  }
  const table = parseToml(text);
  const unknown = Object.keys(table).find((key) => !KEYS.some((known) => known === key));
  if (unknown !== undefined) {
    throw new Error(`it has an unknown key "${printableAscii(unknown, 60)}"; expected ${KEYS.join(' and ')}`);
  }
  const [username, password] = KEYS.map((key) => {
    const value = table[key];
    if (value === undefined) throw new Error(`it has no ${key}`);
    if (typeof value !== 'string' || value === '') throw new Error(`its ${key} must be a string that is not empty`);
    return value;
  });
  return { pattern, username: username ?? '', password: password ?? '' };
}
