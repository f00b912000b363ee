import { LRUCache } from 'lru-cache';
import { acceptRealm, type Challenge, parseChallenges } from './challenge.ts';
import { ImageError } from './errors.ts';
import { parseObject } from './json.ts';
import {
  type Credential,
  elsewhere,
  type Link,
  type Request,
  type Response,
  type Send,
  statusError,
} from './transport.ts';

export type AuthenticationOptions = {
  /** Sends a token request, without redirects. */
  readonly send: Send;
  /** Whether the configuration names a host[:port] as insecure. */
  readonly isConfigured: (host: string) => boolean;
  /** Whether a host[:port] answered from a public address. */
  readonly isPublic: (host: string) => boolean;
  readonly now: () => number;
};

const MAX_TOKEN_BODY = 256 * 1024;
/** Milliseconds; the distribution token specification's default for what names no expiry. */
const DEFAULT_EXPIRY = 60_000;
const MAX_EXPIRY = 3_600_000;
const MAX_TOKENS = 10_000;

/**
 * Answers challenges: anonymous, Basic and Bearer (the distribution project's token specification). A token is kept for
 * (host, scope, credential) until it expires. A credential moves only on a 401 from its own host, to that host or to
 * the realm that it names; a 401 met after a redirect is answered anonymously.
 */
export function authenticate(options: AuthenticationOptions): Link {
  const tokens = new LRUCache<string, { readonly header: string; readonly expiresAt: number }>({ max: MAX_TOKENS });

  return (request, next) => ask(request, next, false);

  async function ask(request: Request, next: Send, isStranger: boolean): Promise<Response> {
    const { scope } = request;
    const key = `${request.url.host} ${scope} ${request.credential?.fingerprint ?? ''}`;
    const held = tokens.get(key);
    const usable = held !== undefined && held.expiresAt > options.now() ? held.header : undefined;
    const response = await next(authorised(request, usable));
    if (response.status !== 401) return response;
    tokens.delete(key);
    if (response.url.host !== request.url.host) {
      // Should the stranger redirect as well and end in a 401 again, that stands.
      return isStranger ? response : ask(elsewhere(request, response.url), next, true);
    }
    const answer = await answerTo(parseChallenges(response.headers['www-authenticate']), request, response, scope);
    if (answer === undefined || answer.header === usable) return response;
    tokens.set(key, answer);
    const second = await next(authorised(request, answer.header));
    if (second.status === 401) tokens.delete(key);
    return second;
  }

  async function answerTo(
    challenges: readonly Challenge[],
    request: Request,
    response: Response,
    scope: string,
  ): Promise<{ header: string; expiresAt: number } | undefined> {
    const bearer = challenges.find(({ scheme, parameters }) => scheme === 'bearer' && parameters.has('realm'));
    if (bearer !== undefined) return fetchToken(bearer, request, response, scope);
    if (request.credential === undefined || !challenges.some(({ scheme }) => scheme === 'basic')) return undefined;
    return { header: basic(request.credential), expiresAt: Number.POSITIVE_INFINITY };
  }

  async function fetchToken(
    { parameters }: Challenge,
    request: Request,
    response: Response,
    scope: string,
  ): Promise<{ header: string; expiresAt: number }> {
    const { host } = response.url;
    const url = acceptRealm(parameters.get('realm') ?? '', { host, insecure: request.policy === 'configured' });
    const service = parameters.get('service');
    if (service !== undefined) url.searchParams.set('service', service);
    if (scope !== '') url.searchParams.set('scope', scope);
    const { credential, ...rest } = request;
    const answer = await options.send({
      ...rest,
      method: 'GET',
      url,
      headers: {
        accept: 'application/json',
        ...(credential === undefined ? {} : { authorization: basic(credential) }),
      },
      // A host that the operator named may lead to another that is named; a stranger on a public address only to public
      // ones: else the page of an internal service would be handed to it as a token.
      policy:
        request.policy === 'configured' && options.isConfigured(url.host)
          ? 'configured'
          : options.isPublic(host)
            ? 'public'
            : 'registry',
      maxBytes: MAX_TOKEN_BODY,
    });
    const fail = (code: 'malformed' | 'denied', problem: string): ImageError =>
      new ImageError(`the token service of ${request.registry} ${problem}`, {
        code,
        temporary: false,
        endpoint: request.registry,
      });
    if (answer.status === 404 || answer.status === 405) throw fail('denied', `answers ${answer.status}`);
    if (answer.status >= 300 && answer.status < 400) throw fail('denied', 'redirects, which is not followed');
    if (answer.status !== 200) throw statusError(answer, request.registry, 'a token', options.now());
    const body = parseObject(answer.body) ?? {};
    const token = [body.token, body.access_token].find((value) => typeof value === 'string' && value !== '');
    if (typeof token !== 'string' || token.length > 65_536 || !/^[\x21-\x7e]+$/.test(token)) {
      throw fail('malformed', 'answers without a token');
    }
    const seconds = body.expires_in;
    const expiry = typeof seconds === 'number' && seconds > 0 ? Math.min(seconds * 1000, MAX_EXPIRY) : DEFAULT_EXPIRY;
    // Given up a little early: it has to last until the registry reads it, on the registry's clock.
    return { header: `Bearer ${token}`, expiresAt: options.now() + expiry * 0.9 };
  }
}

function basic({ username, password }: Credential): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

function authorised(request: Request, header: string | undefined): Request {
  return header === undefined ? request : { ...request, headers: { ...request.headers, authorization: header } };
}
