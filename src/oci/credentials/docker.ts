import { fieldOf, fieldsOf, isObject, type JsonObject, parseObject } from '../../kit/json.ts';
import { printableAscii } from '../../kit/printable.ts';
import type { LoginSource } from '../errors.ts';

/** One login from a Docker configuration; the pattern says for which registry and path. */
export type Login = {
  readonly pattern: string;
  readonly username: string;
  readonly password: string;
  /** A refresh token for the registry's token service; only from the operator's files and programs. */
  readonly identityToken?: string;
  /** To be called when a registry refused it. */
  readonly onRefused?: () => void;
  /** Absent: not known yet. */
  readonly source?: LoginSource;
};

/** The part of a Secret that matters for pull secrets; the values are base64. */
export type PullSecretData = { readonly type: string; readonly data: Readonly<Record<string, string>> };

/** A Docker configuration of the operator. */
export type DockerConfig = {
  readonly logins: readonly Login[];
  /**
   * Names of credential helpers by host[:port]; `docker.io` stands for Docker Hub under any of its names. With an empty
   * name no program is run for this host.
   */
  readonly helpers: ReadonlyMap<string, string>;
  /** The helper for all other hosts. */
  readonly store?: string;
};

/** Why a pull secret or a Docker configuration cannot be used. The message contains nothing of a login. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
}

const CONFIG_TYPE = 'kubernetes.io/dockerconfigjson';
const LEGACY_TYPE = 'kubernetes.io/dockercfg';

/**
 * Returns the logins of a pull secret of either type, in its order. As with the kubelet, `auth` wins over `username`
 * and `password`, and one bad entry makes the whole Secret bad. `identitytoken`, `credHelpers` and `credsStore` are
 * ignored: a pod's author could name programs with them. Entries without a login, and null, are left out.
 *
 * @throws LoginError
 */
export function parsePullSecret(secret: PullSecretData): Login[] {
  if (secret.type !== CONFIG_TYPE && secret.type !== LEGACY_TYPE) {
    throw new LoginError(`its type is neither ${CONFIG_TYPE} nor ${LEGACY_TYPE}`);
  }
  const key = secret.type === CONFIG_TYPE ? '.dockerconfigjson' : '.dockercfg';
  const encoded = secret.data[key];
  if (encoded === undefined) throw new LoginError(`it has no key ${key}`);
  const config = parseConfig(Buffer.from(encoded, 'base64').toString('utf8'));
  if (config === undefined) throw new LoginError(`its ${key} is not a JSON object`);
  const maps = secret.type === LEGACY_TYPE ? [config] : fieldsOf(config, 'auths');
  return merged(maps, `the auths in its ${key}`).flatMap(([pattern, entry], index) => {
    const login = readLogin(entry, `entry ${index + 1} of its ${key}`);
    return login === undefined ? [] : [{ pattern, ...login }];
  });
}

/**
 * Parses a Docker configuration (`config.json`) of the operator; its identity tokens and helper programs count. Entries
 * without a login, which `docker login` writes for a credential store, are left out.
 *
 * @throws LoginError naming the entry
 */
export function parseDockerConfig(text: string): DockerConfig {
  const config = parseConfig(text);
  if (config === undefined) throw new LoginError('it is not a JSON object');
  const store = helperName(fieldOf(config, 'credsStore') ?? '', 'credsStore');
  const logins = merged(fieldsOf(config, 'auths'), 'auths').flatMap(([pattern, entry]) => {
    const at = label('auths', pattern);
    const login = readLogin(entry, at);
    const identityToken = isObject(entry) ? stringField(entry, 'identitytoken', at) : '';
    if (identityToken === '') return login === undefined ? [] : [{ pattern, ...login }];
    return [{ pattern, username: '', password: '', ...login, identityToken }];
  });
  const helpers = merged(fieldsOf(config, 'credHelpers'), 'credHelpers').map(([key, value]): [string, string] => {
    const host = helperHost(key);
    if (host === undefined) throw new LoginError(`${label('credHelpers', key)} is not a host[:port]`);
    return [host, helperName(value ?? '', label('credHelpers', key))];
  });
  return { logins, helpers: new Map(helpers), ...(store === '' ? {} : { store }) };
}

/** Null counts as an empty configuration, as in Go. */
function parseConfig(text: string): JsonObject | undefined {
  return text.trim() === 'null' ? {} : parseObject(text);
}

function merged(maps: readonly unknown[], what: string): [string, unknown][] {
  const all = new Map<string, unknown>();
  for (const map of maps) {
    if (map === null) all.clear();
    else if (!isObject(map)) throw new LoginError(`${what} must be a JSON object`);
    else for (const [key, value] of Object.entries(map)) all.set(key, value);
  }
  return [...all];
}

function label(field: string, key: string): string {
  return `${field}["${printableAscii(key, 100)}"]`;
}

/** The name becomes a part of a program's name, so nothing in it may lead outside PATH. */
function helperName(value: unknown, where: string): string {
  if (typeof value !== 'string') throw new LoginError(`${where} is not a string`);
  if (!/^[A-Za-z0-9._-]*$/.test(value)) {
    throw new LoginError(
      `${where} is not a valid name of a credential helper: letters, digits, ".", "_" and "-", no path`,
    );
  }
  return value;
}

function helperHost(key: string): string | undefined {
  const host = key
    .replace(/^https?:\/\//, '')
    .replace(/\/(?:v[12]\/?)?$/, '')
    .toLowerCase();
  if (!/^[^\s/?#@]+$/.test(host)) return undefined;
  return host === 'index.docker.io' ? 'docker.io' : host;
}

/** Returns undefined for an entry without a login. */
function readLogin(entry: unknown, at: string): { username: string; password: string } | undefined {
  if (entry === null) return undefined;
  if (!isObject(entry)) throw new LoginError(`${at} is not a JSON object`);
  const auth = stringField(entry, 'auth', at).trim();
  if (auth !== '') {
    const decoded = /^[A-Za-z0-9+/\r\n]+={0,2}$/.test(auth) ? Buffer.from(auth, 'base64').toString('utf8') : '';
    const colon = decoded.indexOf(':');
    if (colon < 0) throw new LoginError(`${at} has an auth that is not base64 of user:password`);
    return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
  }
  const [username, password] = [stringField(entry, 'username', at), stringField(entry, 'password', at)];
  return username === '' && password === '' ? undefined : { username, password };
}

function stringField(entry: JsonObject, name: string, at: string): string {
  const value = fieldOf(entry, name) ?? '';
  if (typeof value !== 'string') throw new LoginError(`${at} has a ${name} that is not a string`);
  return value;
}
