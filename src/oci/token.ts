import { LRUCache } from 'lru-cache';
import { acceptRealm, type Challenge } from './challenge.ts';
import { ImageError } from './errors.ts';
import { parseObject } from './json.ts';
import { type Credential, type Request, type Response, type Send, statusError } from './transport.ts';
import { forStrangers, type Trust } from './trust.ts';

export type TokenOptions = {
  /** Sends a token request, without redirects. */
  readonly send: Send;
  /** What holds for a host[:port] that the operator named; undefined for all others. */
  readonly named: (host: string) => { readonly policy: 'configured'; readonly trust?: Trust } | undefined;
  /** Whether a host[:port] answered from a public address. */
  readonly isPublic: (host: string) => boolean;
  readonly now: () => number;
};

export type Token = { readonly text: string /** As of `now`. */; readonly expiresAt: number };

/**
 * Asks the token service that a Bearer challenge names, for the request that was challenged.
 *
 * @throws ImageError
 */
export type FetchToken = (challenge: Challenge, request: Request) => Promise<Token>;

const CLIENT = 'archaware-controller';
const MAX_BODY = 256 * 1024;
const MAX_TOKEN = 65_536;
/** Milliseconds; the distribution token specification's default for what names no expiry. */
const DEFAULT_EXPIRY = 60_000;
const MAX_EXPIRY = 3_600_000;
/** What services say to a POST that do not know it: JFrog 401, ACR 400, others 404 and 405. */
const KNOWS_NO_POST: readonly number[] = [400, 401, 404, 405];

export function createFetchToken(options: TokenOptions): FetchToken {
  /** Hosts of realms whose identity tokens go by GET. */
  const getOnly = new LRUCache<string, true>({ max: 1000 });

  return async ({ parameters }, request) => {
    const { host } = request.url;
    const url = acceptRealm(parameters.get('realm') ?? '', {
      host,
      insecure: request.trust?.plain === true || (request.policy === 'configured' && request.url.protocol === 'http:'),
    });
    const fields = Object.entries({ service: parameters.get('service') ?? '', scope: request.scope }).filter(
      ([, value]) => value !== '',
    );
    const base: Request = { ...towards(url, request), headers: { accept: 'application/json' }, maxBytes: MAX_BODY };
    const identityToken = request.credential?.identityToken;
    if (identityToken === undefined) return read(await get(base, fields, request.credential), request);
    if (!getOnly.has(url.host)) {
      const answer = await post(base, fields, identityToken);
      if (!KNOWS_NO_POST.includes(answer.status)) return read(answer, request);
    }
    const username = request.credential?.username ?? '';
    const token = read(await get(base, fields, { username, password: identityToken }), request);
    getOnly.set(url.host, true);
    return token;
  };

  /** What of the challenged request holds for its token request; its credential is not among that. */
  function towards(url: URL, request: Request): Request {
    const { credential: _credential, trust, endpointHeaders, ...rest } = request;
    if (url.host === request.url.host) {
      return {
        ...rest,
        url,
        ...(trust === undefined ? {} : { trust }),
        ...(endpointHeaders === undefined ? {} : { endpointHeaders }),
      };
    }
    // A host that the operator named may lead to another that is named; a stranger on a public address only to public
    // ones: else the page of an internal service would be handed to it as a token.
    const named = request.policy === 'configured' ? options.named(url.host) : undefined;
    if (named !== undefined) return { ...rest, url, ...named };
    const strangers = trust === undefined ? undefined : forStrangers(trust);
    return {
      ...rest,
      url,
      policy: options.isPublic(request.url.host) ? 'public' : 'registry',
      ...(strangers === undefined ? {} : { trust: strangers }),
    };
  }

  function get(
    base: Request,
    fields: readonly [string, string][],
    login: Pick<Credential, 'username' | 'password'> | undefined,
  ): Promise<Response> {
    const url = new URL(base.url);
    for (const [name, value] of fields) url.searchParams.set(name, value);
    const headers = login === undefined ? base.headers : { ...base.headers, authorization: basic(login) };
    return options.send({ ...base, method: 'GET', url, headers });
  }

  /** OAuth 2, as the distribution token specification has it ("oauth"). */
  function post(base: Request, fields: readonly [string, string][], identityToken: string): Promise<Response> {
    const form = new URLSearchParams([['grant_type', 'refresh_token'], ...fields]);
    form.set('client_id', CLIENT);
    form.set('refresh_token', identityToken);
    return options.send({
      ...base,
      method: 'POST',
      headers: { ...base.headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: form.toString(),
    });
  }

  function read(answer: Response, { registry }: Request): Token {
    const fail = (code: 'malformed' | 'denied', problem: string): ImageError =>
      new ImageError(`the token service of ${registry} ${problem}`, { code, temporary: false, endpoint: registry });
    if (answer.status === 404 || answer.status === 405) throw fail('denied', `answers ${answer.status}`);
    if (answer.status >= 300 && answer.status < 400) throw fail('denied', 'redirects, which is not followed');
    if (answer.status !== 200) throw statusError(answer, registry, 'a token', options.now());
    const body = parseObject(answer.body) ?? {};
    const text = [body.token, body.access_token].find((value) => typeof value === 'string' && value !== '');
    if (typeof text !== 'string' || text.length > MAX_TOKEN || !/^[\x21-\x7e]+$/.test(text)) {
      throw fail('malformed', 'answers without a token');
    }
    const seconds = body.expires_in;
    const expiry = typeof seconds === 'number' && seconds > 0 ? Math.min(seconds * 1000, MAX_EXPIRY) : DEFAULT_EXPIRY;
    // Given up a little early: it has to last until the registry reads it, on the registry's clock.
    return { text, expiresAt: options.now() + expiry * 0.9 };
  }
}

/** The value of an `Authorization` header (RFC 7617). */
export function basic({ username, password }: Pick<Credential, 'username' | 'password'>): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}
