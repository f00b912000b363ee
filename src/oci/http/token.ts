import type { LRUCache } from 'lru-cache';
import { parseObject } from '../../kit/json.ts';
import { parseUrl } from '../../kit/network/url.ts';
import { printableAscii } from '../../kit/printable.ts';
import { ImageError } from '../errors.ts';
import { unencryptedText } from '../sentences.ts';
import {
  type Credential,
  follow,
  type Link,
  type Named,
  type RegistryRequest,
  type RegistryResponse,
  redirectTo,
  type SendRequest,
  statusError,
  towards,
} from './transport.ts';

type LeadOptions = {
  readonly named: Named;
  /** Whether a host[:port] answered from a public address. */
  readonly isPublic: (host: string) => boolean;
};

export type TokenOptions = LeadOptions & {
  /** Sends a token request, through {@link followOnHost}. */
  readonly send: SendRequest;
  readonly now: () => number;
};

/** What token requests need, and have learned. */
export type TokenState = TokenOptions & {
  /** Hosts of realms, with the kind of login that they do not accept in the usual way. */
  readonly unusual: LRUCache<string, true>;
};

type Token = { readonly text: string /** As of `now`. */; readonly until: number };

const CLIENT = 'archaware-controller';
const MAX_BODY = 256 * 1024;
const MAX_TOKEN = 65_536;
/** Milliseconds; the distribution token specification's default for an answer without an expiry. */
const DEFAULT_EXPIRY = 60_000;
const MAX_EXPIRY = 3_600_000;
const MAX_REDIRECTS = 3;
/**
 * Statuses of services that do not support POST: JFrog 401, ACR 400, others 404 and 405. After 301 to 303 a POST would become
 * a GET without its form, and a GET is followed.
 */
const KNOWS_NO_POST: readonly number[] = [301, 302, 303, 400, 401, 404, 405];
/** Statuses of services that do not support GET. */
const KNOWS_NO_GET: readonly number[] = [404, 405];

type TokenRequest = { readonly base: RegistryRequest; readonly service: string; readonly scopes: readonly string[] };

/**
 * Requests a token from the service that a Bearer challenge names, for the challenged request and these scopes.
 *
 * @throws ImageError
 */
export async function fetchToken(
  state: TokenState,
  { parameters }: Challenge,
  request: RegistryRequest,
  scopes: readonly string[],
): Promise<Token> {
  const { host, hostname } = request.url;
  const realm = parameters.get('realm') ?? '';
  const insecure =
    request.trust?.plain === true || (request.policy === 'configured' && request.url.protocol === 'http:');
  const url = acceptRealm(realm, { host, hostname, insecure });
  const service = parameters.get('service') ?? '';
  const { credential, ...rest } = request;
  const base: RegistryRequest = {
    // Without its credential.
    ...lead(rest, url, state),
    ...(credential?.source && { login: credential.source }),
    ...{ hostIs: 'token service', headers: { accept: 'application/json' }, maxBytes: MAX_BODY },
  };
  const asked: TokenRequest = { base, service, scopes: scopes.filter((scope) => scope !== '') };
  try {
    return read(await login(state, asked, credential), request, state.now());
  } catch (error) {
    const isOpen = url.protocol === 'https:' && /^http:/i.test(realm.trim());
    throw isOpen && error instanceof ImageError && error.unreachable !== undefined ? unencrypted(host, error) : error;
  }
}

/**
 * Asks in the usual way: an identity token by POST, a password by GET. A service that does not support that way is asked in the
 * other one from then on.
 */
async function login({ send, unusual }: TokenState, asked: TokenRequest, credential?: Credential) {
  if (credential === undefined) return send(byGet(asked));
  const { username, password, identityToken } = credential;
  const get = () => send(byGet(asked, { username, password: identityToken ?? password }));
  const byPassword = { grant_type: 'password', username, password };
  const grant =
    identityToken === undefined ? byPassword : { grant_type: 'refresh_token', refresh_token: identityToken };
  const post = () => send(byPost(asked, grant));
  const [usual, other, unsupported] =
    identityToken === undefined ? [get, post, KNOWS_NO_GET] : [post, get, KNOWS_NO_POST];
  const key = `${asked.base.url.host} ${identityToken === undefined ? 'password' : 'identity token'}`;
  if (!unusual.has(key)) {
    const answer = await usual();
    if (!unsupported.includes(answer.status)) return answer;
  }
  const answer = await other();
  if (answer.status === 200) unusual.set(key, true);
  else if (unsupported.includes(answer.status)) unusual.delete(key);
  return answer;
}

function byGet(
  { base, service, scopes }: TokenRequest,
  login?: Pick<Credential, 'username' | 'password'>,
): RegistryRequest {
  const url = new URL(base.url);
  if (service !== '') url.searchParams.set('service', service);
  if (scopes.length > 0) url.searchParams.delete('scope');
  for (const scope of scopes) url.searchParams.append('scope', scope);
  const headers = login === undefined ? base.headers : { ...base.headers, authorization: basic(login) };
  return { ...base, method: 'GET', url, headers };
}

/**
 * Returns a request by OAuth 2 (distribution token specification, "oauth").
 *
 * @param grant the fields that say who asks (RFC 6749, sections 4.3.2 and 6)
 */
function byPost({ base, service, scopes }: TokenRequest, grant: Readonly<Record<string, string>>): RegistryRequest {
  const form = new URLSearchParams(grant);
  if (service !== '') form.set('service', service);
  if (scopes.length > 0) form.set('scope', scopes.join(' '));
  form.set('client_id', CLIENT);
  const headers = { ...base.headers, 'content-type': 'application/x-www-form-urlencoded' };
  return { ...base, method: 'POST', headers, body: form.toString() };
}

function read(answer: RegistryResponse, { registry }: RegistryRequest, now: number): Token {
  const fail = (code: 'malformed' | 'denied', problem: string): ImageError =>
    new ImageError(`the token service of ${registry} ${problem}`, { code, endpoint: registry, byCredential: true });
  if (answer.status === 404 || answer.status === 405) throw fail('denied', `answers ${answer.status}`);
  if (answer.status >= 300 && answer.status < 400) {
    throw fail('denied', `redirects; only ${MAX_REDIRECTS} redirects with https on its own host are followed`);
  }
  if (answer.status !== 200) throw statusError(answer, registry, 'a token', now, true);
  const body = parseObject(answer.body) ?? {};
  const text = [body.token, body.access_token].find((value) => typeof value === 'string' && value !== '');
  if (typeof text !== 'string' || text.length > MAX_TOKEN || !/^[\x21-\x7e]+$/.test(text)) {
    throw fail('malformed', 'answers without a token');
  }
  const seconds = body.expires_in;
  const expiry = typeof seconds === 'number' && seconds > 0 ? Math.min(seconds * 1000, MAX_EXPIRY) : DEFAULT_EXPIRY;
  // Expires a little early: the token must still be valid when the registry reads it, by the registry's clock.
  return { text, until: now + expiry * 0.9 };
}

/** Returns the token request for a URL to which a registry, or its token service, leads. */
function lead(request: RegistryRequest, url: URL, { named, isPublic }: LeadOptions): RegistryRequest {
  if (url.host === request.url.host) return { ...request, url };
  // If the operator did not name the registry, its credentials go only to token services with a verified certificate.
  const mayLead = request.policy === 'configured' || request.trust?.plain === true;
  const other = towards(request, url, mayLead ? named : () => undefined);
  if (other.policy === 'configured') return other;
  // A registry on a public address may name only a token service on a public address. Otherwise it would receive the
  // page of an internal service as a token.
  const policy = request.policy === 'public' || isPublic(request.url.host) ? 'public' : 'registry';
  return { ...other, policy, ...(mayLead ? {} : { ledBy: request.ledBy ?? request.url.host }) };
}

/**
 * Follows the redirects of a token service on its own host name, where the login may go, and never from https to http. The answer
 * of another host must not become a token.
 */
export function followOnHost(options: LeadOptions): Link {
  return follow((request, response, hop) => {
    const url = redirectTo(response);
    const keepsMethod = request.method === 'GET' || [307, 308].includes(response.status);
    if (url === undefined || !keepsMethod || hop === MAX_REDIRECTS) return undefined;
    if (url.hostname !== response.url.hostname || url.username !== '' || url.password !== '') return undefined;
    if (url.protocol !== 'https:' && url.origin !== response.url.origin) return undefined;
    return lead(request, url, options);
  });
}

/** Returns the value of an `Authorization` header (RFC 7617). */
export function basic({ username, password }: Pick<Credential, 'username' | 'password'>): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

/** One challenge of a `WWW-Authenticate` header (RFC 9110, section 11.6.1). */
type Challenge = {
  /** In lower case: `basic`, `bearer`. */
  readonly scheme: string;
  /** Names in lower case; of a repeated parameter the first value. */
  readonly parameters: ReadonlyMap<string, string>;
};

/** What a header asks for that can be answered. */
export type AskedToken = {
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
/** Enough for a gateway, or for a registry with a name of its own for a repository. More would only make the token's URL longer. */
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
export function readChallenge(text: string | undefined): AskedToken | undefined {
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
    new ImageError(`${registry.host} names a token service that ${problem}`, { code, endpoint: registry.host });
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
function unencrypted(host: string, failure?: ImageError): ImageError {
  return new ImageError(unencryptedText(host, failure), { code: 'forbidden-address', endpoint: host });
}
