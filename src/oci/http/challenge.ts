import { printableAscii } from '../../kit/printable.ts';
import { ImageError } from '../errors.ts';
import { unencryptedText } from '../sentences.ts';
import { parseUrl } from './url.ts';

/** One challenge of a `WWW-Authenticate` header (RFC 9110, section 11.6.1). */
export type Challenge = {
  /** In lower case: `basic`, `bearer`. */
  readonly scheme: string;
  /** Names in lower case; of a repeated parameter the first value. */
  readonly parameters: ReadonlyMap<string, string>;
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

/**
 * Parses the values of one or several `WWW-Authenticate` headers. Never throws: the rest after a syntax error is
 * ignored, and so are characters beyond 8 KiB. Takes linear time: every step of the scanner moves forward.
 */
export function parseChallenges(header: string | readonly string[] | undefined): Challenge[] {
  const text = (typeof header === 'string' ? header : (header ?? []).join(', ')).slice(0, MAX_HEADER);
  const found: { scheme: string; parameters: Map<string, string> }[] = [];
  const at = (expression: RegExp, from: number): string => {
    expression.lastIndex = from;
    return expression.exec(text)?.[0] ?? '';
  };
  let position = 0;
  while (position < text.length && found.length < MAX_CHALLENGES) {
    position += at(/[ \t,]*/y, position).length;
    const token = at(/[!#$%&'*+.^_`|~0-9A-Za-z-]+/y, position);
    if (token === '') break;
    position += token.length;
    const gap = at(/[ \t]*/y, position).length;
    const current = found.at(-1);
    if (current !== undefined && text[position + gap] === '=') {
      position += gap + 1;
      position += at(/[ \t]*/y, position).length;
      const value = readValue(text, position);
      if (value === undefined) break;
      position = value.end;
      const name = token.toLowerCase();
      if (!current.parameters.has(name)) current.parameters.set(name, value.text);
      continue;
    }
    found.push({ scheme: token.toLowerCase(), parameters: new Map() });
    position += gap;
    // `Negotiate YII=` carries a token68. It looks like a parameter but has no value after its "=".
    position += at(/[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/y, position).length;
  }
  return found;
}

function readValue(text: string, start: number): { text: string; end: number } | undefined {
  if (text[start] !== '"') {
    let end = start;
    while (end < text.length && !' \t,'.includes(text.charAt(end))) end += 1;
    return end === start ? undefined : { text: text.slice(start, end), end };
  }
  const parts: string[] = [];
  for (let index = start + 1; index < text.length; index += 1) {
    const character = text.charAt(index);
    if (character === '"') return { text: parts.join(''), end: index + 1 };
    if (character === '\\') index += 1;
    parts.push(text.charAt(index));
  }
  return undefined;
}

/**
 * Returns the scopes that a Bearer challenge asks for, as far as they only read repositories: a registry that passes on
 * the challenge of another one, or maps names, knows the repository under another name. Never throws.
 */
export function pullScopes({ parameters }: Challenge): string[] {
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
