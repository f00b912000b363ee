import { printableAscii } from '../../kit/printable.ts';
import { ImageError } from '../errors.ts';
import { parseUrl } from './url.ts';

/** One challenge of a `WWW-Authenticate` header (RFC 9110, section 11.6.1). */
export type Challenge = {
  /** Lower case: `basic`, `bearer`. */
  readonly scheme: string;
  /** Names in lower case; of a repeated one the first. */
  readonly parameters: ReadonlyMap<string, string>;
};

const MAX_HEADER = 8192;
const MAX_CHALLENGES = 16;
const MAX_REALM = 2048;
/** What a gateway or a name of its own for a repository needs; more would only make the token's URL longer. */
const MAX_SCOPES = 4;
const MAX_SCOPE = 300;
/** GitHub's example of a scope, in challenges that know no repository. */
const EXAMPLE_SCOPE = 'repository:user/image:pull';
/** One way to match a text, so that its time is linear. */
const PULL_SCOPE = /^repository:[a-z0-9]+(?:[._/-]+[a-z0-9]+)*:pull$/;

/**
 * Parses the value of one or several `WWW-Authenticate` headers. Never throws: what follows a syntax error is left out,
 * as are characters beyond 8 KiB. Linear in the length: every step of the scanner moves forward.
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
    // `Negotiate YII=` carries a token68, which looks like a parameter but has no value after its "=".
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
 * What a Bearer challenge wants a token to be good for, as far as that is reading repositories: a registry that passes on
 * the challenge of another one, or maps names, knows the repository under another name. Never throws.
 */
export function pullScopes({ parameters }: Challenge): string[] {
  const scopes = (parameters.get('scope') ?? '')
    .split(' ')
    .filter((scope) => scope.length <= MAX_SCOPE && PULL_SCOPE.test(scope) && scope !== EXAMPLE_SCOPE);
  return [...new Set(scopes)].slice(0, MAX_SCOPES);
}

/**
 * The address of a token service, as a registry's own 401 named it: https, or http where the registry is configured as
 * insecure; no user information, no fragment. Where its addresses may lie is judged when it is dialled.
 *
 * @throws ImageError `forbidden-address`, or `malformed` for what is no URL
 */
export function acceptRealm(realm: string, registry: { readonly host: string; readonly insecure: boolean }): URL {
  const refuse = (code: 'forbidden-address' | 'malformed', problem: string): ImageError =>
    new ImageError(`${registry.host} names a token service that ${problem}`, {
      code,
      temporary: false,
      endpoint: registry.host,
    });
  const url = realm.length > MAX_REALM ? undefined : parseUrl(realm);
  if (url === undefined) throw refuse('malformed', 'is no absolute URL');
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && registry.insecure)) {
    const key = url.protocol === 'http:' ? `; registries.insecure: ["${registry.host}"] allows it` : '';
    throw refuse('forbidden-address', `is not https ("${printableAscii(url.protocol, 20)}")${key}`);
  }
  if (url.username !== '' || url.password !== '') throw refuse('forbidden-address', 'holds user information');
  if (url.hash !== '') throw refuse('malformed', 'holds a fragment');
  return url;
}
