import { parseObject } from '../../kit/json.ts';
import { createLru } from '../../kit/lru.ts';
import { ImageError } from '../errors.ts';
import { acceptRealm, type Challenge, unencrypted } from './challenge.ts';
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

/** A token request: the base request, the service and the scopes. */
type Asked = { readonly base: RegistryRequest; readonly service: string; readonly scopes: readonly string[] };
export function createFetchToken(options: TokenOptions) {
  /** Hosts of realms, with the kind of login that they do not accept in the usual way. */
  const unusual = createLru<true>(1000);

  /**
   * Requests a token from the service that a Bearer challenge names, for the challenged request and these scopes.
   *
   * @throws ImageError
   */
  return async ({ parameters }: Challenge, request: RegistryRequest, scopes: readonly string[]): Promise<Token> => {
    const { host, hostname } = request.url;
    const realm = parameters.get('realm') ?? '';
    const insecure =
      request.trust?.plain === true || (request.policy === 'configured' && request.url.protocol === 'http:');
    const url = acceptRealm(realm, { host, hostname, insecure });
    const service = parameters.get('service') ?? '';
    const { credential, ...rest } = request;
    const base: RegistryRequest = {
      // Without its credential.
      ...lead(rest, url, options),
      ...(credential?.source && { login: credential.source }),
      ...{ hostIs: 'token service', headers: { accept: 'application/json' }, maxBytes: MAX_BODY },
    };
    const asked: Asked = { base, service, scopes: scopes.filter((scope) => scope !== '') };
    try {
      return read(await login(asked, credential), request);
    } catch (error) {
      const isOpen = url.protocol === 'https:' && /^http:/i.test(realm.trim());
      throw isOpen && error instanceof ImageError && error.unreachable !== undefined ? unencrypted(host, error) : error;
    }
  };

  /**
   * Asks in the usual way: an identity token by POST, a password by GET. A service that does not support that way is asked in the
   * other one from then on.
   */
  async function login(asked: Asked, credential: Credential | undefined): Promise<RegistryResponse> {
    if (credential === undefined) return get(asked, undefined);
    const { username, password, identityToken } = credential;
    const byGet = () => get(asked, { username, password: identityToken ?? password });
    const byPassword = { grant_type: 'password', username, password };
    const grant =
      identityToken === undefined ? byPassword : { grant_type: 'refresh_token', refresh_token: identityToken };
    const byPost = () => post(asked, grant);
    const [usual, other, unsupported] =
      identityToken === undefined ? [byGet, byPost, KNOWS_NO_GET] : [byPost, byGet, KNOWS_NO_POST];
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

  function get(
    { base, service, scopes }: Asked,
    login: Pick<Credential, 'username' | 'password'> | undefined,
  ): Promise<RegistryResponse> {
    const url = new URL(base.url);
    if (service !== '') url.searchParams.set('service', service);
    if (scopes.length > 0) url.searchParams.delete('scope');
    for (const scope of scopes) url.searchParams.append('scope', scope);
    const headers = login === undefined ? base.headers : { ...base.headers, authorization: basic(login) };
    return options.send({ ...base, method: 'GET', url, headers });
  }

  /**
   * Requests a token by OAuth 2 (distribution token specification, "oauth").
   *
   * @param grant the fields that say who asks (RFC 6749, sections 4.3.2 and 6)
   */
  function post({ base, service, scopes }: Asked, grant: Readonly<Record<string, string>>): Promise<RegistryResponse> {
    const form = new URLSearchParams(grant);
    if (service !== '') form.set('service', service);
    if (scopes.length > 0) form.set('scope', scopes.join(' '));
    form.set('client_id', CLIENT);
    return options.send({
      ...base,
      method: 'POST',
      headers: { ...base.headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: form.toString(),
    });
  }

  function read(answer: RegistryResponse, { registry }: RegistryRequest): Token {
    const fail = (code: 'malformed' | 'denied', problem: string): ImageError =>
      new ImageError(`the token service of ${registry} ${problem}`, {
        code,
        endpoint: registry,
        byCredential: true,
      });
    if (answer.status === 404 || answer.status === 405) throw fail('denied', `answers ${answer.status}`);
    if (answer.status >= 300 && answer.status < 400) {
      throw fail('denied', `redirects; only ${MAX_REDIRECTS} redirects with https on its own host are followed`);
    }
    if (answer.status !== 200) throw statusError(answer, registry, 'a token', options.now(), true);
    const body = parseObject(answer.body) ?? {};
    const text = [body.token, body.access_token].find((value) => typeof value === 'string' && value !== '');
    if (typeof text !== 'string' || text.length > MAX_TOKEN || !/^[\x21-\x7e]+$/.test(text)) {
      throw fail('malformed', 'answers without a token');
    }
    const seconds = body.expires_in;
    const expiry = typeof seconds === 'number' && seconds > 0 ? Math.min(seconds * 1000, MAX_EXPIRY) : DEFAULT_EXPIRY;
    // Expires a little early: the token must still be valid when the registry reads it, by the registry's clock.
    return { text, until: options.now() + expiry * 0.9 };
  }
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
