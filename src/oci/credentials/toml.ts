import { printableAscii } from '../../kit/printable.ts';
import { parseToml } from '../endpoints/toml-table.ts';
import type { Login } from './docker.ts';

const SUFFIX = '.toml';

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
  const { user, secret, ...others } = parseToml(text);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new Error(`it has an unknown key "${printableAscii(unknown, 60)}"; expected user and secret`);
  }
  return { pattern, username: textOf('user', user), password: textOf('secret', secret) };
}

function textOf(key: string, value: unknown): string {
  if (value === undefined) throw new Error(`it has no ${key}`);
  if (typeof value !== 'string' || value === '') throw new Error(`its ${key} must be a string that is not empty`);
  return value;
}
