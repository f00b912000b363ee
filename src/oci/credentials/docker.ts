import { matchesElements } from '../../kit/glob.ts';
import { fieldOf, fieldsOf, isObject, type JsonObject, parseObject } from '../../kit/json.ts';
import { printableAscii } from '../../kit/printable.ts';
import type { Credential } from '../http/transport.ts';
import { HUB, HUB_LOGIN } from '../reference.ts';

/**
 * One login from a Docker configuration; the pattern says for which registry and path. Identity tokens come only from the operator's
 * files and programs.
 */
export type Login = { readonly pattern: string } & Omit<Credential, 'fingerprint' | 'shared' | 'onAccepted'>;

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
  return host === HUB_LOGIN ? HUB : host;
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

type Key = { readonly key: string; readonly labels: readonly string[]; readonly port: string; readonly path: string };

/**
 * Returns the entries that the kubelet would use for an image, in its order: keys in reverse lexicographic order, and entries of one key as
 * given (pkg/credentialprovider/keyring.go). Docker Hub's old name counts only if nothing else matches.
 *
 * @param name normalised, without tag and digest: `docker.io/library/nginx`
 */
export function matchCredentials<T extends { readonly pattern: string }>(entries: readonly T[], name: string): T[] {
  const parsed = entries.flatMap((entry) => {
    const key = parseKey(entry.pattern);
    return key ? { entry, key } : [];
  });
  const target = split(name);
  const matching = parsed
    .filter(({ key }) => matches(key, target))
    .sort(({ key: { key: one } }, { key: { key: other } }) => (one < other ? 1 : one > other ? -1 : 0));
  if (matching.length > 0) return matching.map(({ entry }) => entry);
  if (target.host !== HUB) return [];
  return parsed.filter(({ key }) => key.key === HUB_LOGIN).map(({ entry }) => entry);
}

/** Whether the kubelet accepts a text as a pattern of image names, as in a plug-in's `matchImages`. */
export function isPattern(text: string): boolean {
  return parseKey(text) !== undefined;
}

/**
 * Returns a pattern without scheme, user information, query, and a leading `/v1` or `/v2`; undefined if it is not a
 * URL. The host is in lower case, as in image names.
 */
function parseKey(pattern: string): Key | undefined {
  const schemeless = pattern.replace(/^https?:\/\//, '').replace(/[?#].*$/s, '');
  const slash = schemeless.indexOf('/');
  const authority = slash < 0 ? schemeless : schemeless.slice(0, slash);
  const rawPath = slash < 0 ? '' : schemeless.slice(slash);
  // The prefix is removed only from a longer path: `/v2` alone stays, as with the kubelet.
  const path = /^\/v[12]\//.test(rawPath) ? rawPath.slice(3) : rawPath;
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  // Characters that Go's url.Parse refuses: control characters, spaces, and ASCII characters that a host cannot contain.
  if (/[^!-$&-[\]_a-z~\u{80}-\u{10ffff}]/u.test(host) || /:(?!\d*$)/.test(host.replace(/^\[[^\]]*\]/, '')))
    return undefined;
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined;
  const { labels, port } = split(host);
  return { key: path === '/' ? host : host + path, labels, port, path: path === '/' ? '' : path };
}

function split(name: string): Omit<Key, 'key'> & { host: string } {
  const slash = name.indexOf('/');
  const host = slash < 0 ? name : name.slice(0, slash);
  const [, bare = host, port = ''] = /^(\[[^\]]*\]|[^:]*):(\d*)$/.exec(host) ?? [];
  // An IPv6 address without its brackets, because a glob would read them as a character class.
  const labels = bare.replace(/^\[([^:]*:.*)\]$/, '$1').split('.');
  return { host, labels, port, path: slash < 0 ? '' : name.slice(slash) };
}

function matches(key: Key, target: Omit<Key, 'key'>): boolean {
  return (
    key.port === target.port &&
    key.labels.length === target.labels.length &&
    // A plain prefix: `/team` also matches `/team-b/x`, as with the kubelet.
    target.path.startsWith(key.path) &&
    key.labels.every((label, index) => matchesPathGlob(label, target.labels[index] ?? ''))
  );
}

/**
 * Matches one label against a glob of Go's `path.Match`: `*` and `[a-z]`. Its `?` and `[^a-z]` cannot occur here: in a
 * URL, `?` begins the query, and `^` is not allowed in a host. A class without an end matches nothing.
 */
function matchesPathGlob(glob: string, label: string): boolean {
  const elements = glob.match(/[^[]|\[.[^\]]*\]/gsy) ?? [];
  return elements.join('').length === glob.length && matchesElements(elements, label, isMember);
}

function isMember(element: string, character: string): boolean {
  if (element.length === 1) return element === character;
  for (const [, low = '', high = low] of element.slice(1, -1).matchAll(/(.)(?:-(.))?/gs)) {
    if (low <= character && character <= high) return true;
  }
  return false;
}
