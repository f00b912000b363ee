import { isObject, type JsonObject, parseObject } from '../json.ts';

/** One login out of a Docker configuration; the pattern says for which registry and path. */
export type Login = {
  readonly pattern: string;
  readonly username: string;
  readonly password: string;
  /** A refresh token for the registry's token service; from the operator's files and programs only. */
  readonly identityToken?: string;
};

/** A Secret of the cluster, as far as pull secrets go; the values are base64. */
export type PullSecret = { readonly type: string; readonly data: Readonly<Record<string, string>> };

/** Why a Secret is of no use as a pull secret. The message holds nothing of what is in it. */
export class PullSecretError extends Error {
  override readonly name = 'PullSecretError';
}

const CONFIG_TYPE = 'kubernetes.io/dockerconfigjson';
const LEGACY_TYPE = 'kubernetes.io/dockercfg';

/**
 * The logins of a pull secret of either type, in its order. As with the kubelet, `auth` wins over `username` and
 * `password`, one bad entry makes the whole Secret bad, and `identitytoken`, `credHelpers` and `credsStore` are ignored:
 * they would be programs named by a pod's author. Entries without a login are left out.
 *
 * @throws PullSecretError
 */
export function parsePullSecret(secret: PullSecret): Login[] {
  if (secret.type !== CONFIG_TYPE && secret.type !== LEGACY_TYPE) {
    throw new PullSecretError(`its type is neither ${CONFIG_TYPE} nor ${LEGACY_TYPE}`);
  }
  const key = secret.type === CONFIG_TYPE ? '.dockerconfigjson' : '.dockercfg';
  const encoded = secret.data[key];
  if (encoded === undefined) throw new PullSecretError(`it has no key ${key}`);
  const config = parseObject(Buffer.from(encoded, 'base64'));
  if (config === undefined) throw new PullSecretError(`its ${key} is no JSON object`);
  const auths = secret.type === LEGACY_TYPE ? config : config.auths;
  if (auths === undefined || auths === null) return [];
  if (!isObject(auths)) throw new PullSecretError(`the auths in its ${key} are no JSON object`);
  return Object.entries(auths).flatMap(([pattern, entry], index) => {
    const problem = (text: string): PullSecretError => new PullSecretError(`entry ${index + 1} of its ${key} ${text}`);
    if (!isObject(entry)) throw problem('is no JSON object');
    const login = readLogin(entry, problem);
    return login === undefined ? [] : [{ pattern, ...login }];
  });
}

function readLogin(
  entry: JsonObject,
  problem: (text: string) => PullSecretError,
): { username: string; password: string } | undefined {
  const field = (name: string): string => {
    const value = entry[name] ?? '';
    if (typeof value !== 'string') throw problem(`has a ${name} that is no string`);
    return value;
  };
  const auth = field('auth').trim();
  if (auth !== '') {
    const decoded = /^[A-Za-z0-9+/\r\n]+={0,2}$/.test(auth) ? Buffer.from(auth, 'base64').toString('utf8') : '';
    const colon = decoded.indexOf(':');
    if (colon < 0) throw problem('has an auth that is not base64 of user:password');
    return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
  }
  const username = field('username');
  const password = field('password');
  return username === '' && password === '' ? undefined : { username, password };
}
