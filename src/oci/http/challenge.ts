import { printableAscii } from '../../kit/printable.ts';
import { ImageError } from '../errors.ts';
import { unencryptedText } from '../sentences.ts';
import { parseUrl } from './transport.ts';

/** One challenge of a `WWW-Authenticate` header (RFC 9110, section 11.6.1). */
export type Challenge = {
  /** In lower case: `basic`, `bearer`. */
  readonly scheme: string;
  /** Names in lower case; of a repeated parameter the first value. */
  readonly parameters: ReadonlyMap<string, string>;
};

/** What a header asks for that can be answered. */
export type Asked = {
  /** The header. */
  readonly text: string;
  readonly bearer: Challenge | undefined;
  readonly isBasic: boolean;
  /** The scopes of the Bearer challenge, as far as they only read. */
  readonly scopes: readonly string[];
  /** What is asked for, without the scopes. */
  readonly realm: string;
};

const MAX_HEADER = 8192;
const MAX_CHALLENGES = 16;
const MAX_REALM = 2048;
/**
 * Enough for a gateway, or for a registry with a name of its own for a repository. More would only make the token's URL
 * longer.
 */
const MAX_SCOPES = 4;
const MAX_SCOPE = 300;
/** GitHub's example of a scope, in challenges that know no repository. */
const EXAMPLE_SCOPE = 'repository:user/image:pull';
/** Can match a text in only one way, so that its time is linear. */
const PULL_SCOPE = /^(repository:[a-z0-9]+(?:[._/-]+[a-z0-9]+)*):pull(?:,push)?$/;

/** The name of a scheme or of a parameter, with what stands around it. */
const NAME = /[ \t,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*/y;
/** `Negotiate YII=` carries a token68. It looks like a parameter but has no value after its "=". */
const TOKEN68 = /[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/y;
const VALUE = /=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^" \t,][^ \t,]*))/sy;

/**
 * Parses the values of one or several `WWW-Authenticate` headers. Never throws: the rest after a syntax error is
 * ignored, and so are characters beyond 8 KiB. Takes linear time: every step moves forward.
 */
export function parseChallenges(header = ''): Challenge[] {
  const text = header.slice(0, MAX_HEADER);
  const found: { scheme: string; parameters: Map<string, string> }[] = [];
  let position = 0;
  const next = (expression: RegExp): RegExpExecArray | null => {
    expression.lastIndex = position;
    const match = expression.exec(text);
    position = match === null ? position : expression.lastIndex;
    return match;
  };
  while (found.length < MAX_CHALLENGES) {
    const name = next(NAME)?.[1]?.toLowerCase();
    if (name === undefined) break;
    const current = found.at(-1);
    if (current === undefined || text[position] !== '=') {
      found.push({ scheme: name, parameters: new Map() });
      next(TOKEN68);
      continue;
    }
    const value = next(VALUE);
    if (value === null) break;
    const [, quoted, plain = ''] = value;
    if (!current.parameters.has(name)) current.parameters.set(name, quoted?.replace(/\\(.)/gs, '$1') ?? plain);
  }
  return found;
}

/** Returns undefined if nothing can be answered. */
export function readChallenge(text: string | undefined): Asked | undefined {
  const challenges = parseChallenges(text);
  const bearer = challenges.find(({ scheme, parameters }) => scheme === 'bearer' && parameters.has('realm'));
  const isBasic = challenges.some(({ scheme }) => scheme === 'basic');
  if (text === undefined || (bearer === undefined && !isBasic)) return undefined;
  const scopes = bearer === undefined ? [] : pullScopes(bearer);
  const [realm = 'basic', service] = ['realm', 'service'].map((name) => bearer?.parameters.get(name));
  return { text, bearer, isBasic, scopes, realm: `${realm} ${service ?? ''}` };
}

/**
 * Returns the scopes that a Bearer challenge asks for, as far as they only read repositories: a registry that passes on
 * the challenge of another one, or maps names, knows the repository under another name. Never throws.
 */
function pullScopes({ parameters }: Challenge): string[] {
  const scopes = (parameters.get('scope') ?? '')
    .split(' ')
    .filter((scope) => scope.length <= MAX_SCOPE)
    // Some registries ask everybody for a token that may also push. Reading needs less.
    .flatMap((scope) => PULL_SCOPE.exec(scope)?.[1] ?? [])
    .map((repository) => `${repository}:pull`)
    .filter((scope) => scope !== EXAMPLE_SCOPE);
  return [...new Set(scopes)].slice(0, MAX_SCOPES);
}

type RealmOf = { readonly host: string; readonly hostname: string; readonly insecure: boolean };

/**
 * Checks the address of a token service that a registry's own 401 named: it must be https, or http if the registry is
 * configured as insecure, without user information and without a fragment. http on the registry's own host name becomes https: such
 * a registry often does not know that TLS ends in front of it. Its network addresses are judged when it is dialled.
 *
 * @throws ImageError `forbidden-address`, or `malformed` if it is not a URL
 */
export function acceptRealm(realm: string, registry: RealmOf): URL {
  const refuse = (code: 'forbidden-address' | 'malformed', problem: string): ImageError =>
    new ImageError(`${registry.host} names a token service that ${problem}`, {
      code,
      endpoint: registry.host,
    });
  const url = realm.length > MAX_REALM ? undefined : parseUrl(realm);
  if (url === undefined) throw refuse('malformed', 'is not an absolute URL');
  if (url.protocol === 'http:' && !registry.insecure) {
    if (url.hostname !== registry.hostname) throw unencrypted(registry.host);
    url.protocol = 'https:';
  } else if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw refuse('forbidden-address', `is not https ("${printableAscii(url.protocol, 20)}")`);
  }
  if (url.username !== '' || url.password !== '') throw refuse('forbidden-address', 'contains user information');
  if (url.hash !== '') throw refuse('malformed', 'contains a fragment');
  return url;
}

/**
 * Returns the error for a token service over plain http, of a registry that is not.
 *
 * @param failure what happened over https, if that was tried
 */
export function unencrypted(host: string, failure?: ImageError): ImageError {
  return new ImageError(unencryptedText(host, failure), { code: 'forbidden-address', endpoint: host });
}
