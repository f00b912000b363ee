import { createFlights } from '../../kit/flights.ts';
import { createLru } from '../../kit/lru.ts';
import { type Challenge, parseChallenges, pullScopes } from './challenge.ts';
import { basic, createFetchToken, type TokenOptions } from './token.ts';
import {
  type Credential,
  elsewhere,
  type Link,
  type RegistryRequest,
  type RegistryResponse,
  type SendRequest,
} from './transport.ts';

/** The value of an `Authorization` header, and the scopes that its token was requested for. */
type Answer = { readonly header: string; readonly expiresAt: number; readonly scopes?: readonly string[] };

const MAX_ANSWERS = 10_000;
/**
 * The most challenges of one host that are answered for one request. A second one is answered only if it names a new
 * scope.
 */
const MAX_ROUNDS = 2;

/**
 * Answers challenges: anonymous, Basic and Bearer (the distribution project's token specification). A token is kept for
 * (host, scope, credential) until it expires, and is requested once, however many requests wait for it. A credential is
 * sent only after a 401 from its own host, to that host or to the realm that it names. A 401 from a host that a
 * redirect leads to is answered anonymously, and does not invalidate the answer to the first host.
 */
export function authenticate(options: TokenOptions): Link {
  const answers = createLru<Answer>(MAX_ANSWERS);
  const flights = createFlights<Answer>();
  const fetchToken = createFetchToken(options);

  return async (request, next) => {
    const response = await converse(request, next);
    if (response.status !== 401 || isFrom(request, response)) return response;
    // If that host redirects as well and a third host answers 401, that 401 is the result.
    return converse(elsewhere(request, response.url, options.named), next, response);
  };

  /**
   * Sends the request to its own host and answers the challenges; `refusal` is a 401 of that host that has already
   * arrived.
   */
  async function converse(
    request: RegistryRequest,
    next: SendRequest,
    refusal?: RegistryResponse,
  ): Promise<RegistryResponse> {
    const key = keyOf(request);
    let held = usable(key) ?? (await beforehand(request, next, key));
    let response = refusal === undefined || held !== undefined ? await next(authorised(request, held)) : refusal;
    for (let round = 1; response.status === 401 && isFrom(request, response); round += 1) {
      if (answers.get(key) === held) answers.delete(key);
      const scopes = [...new Set([request.scope, ...scopesOf(response)])];
      const isNew = round === 1 || scopes.some((scope) => held?.scopes?.includes(scope) === false);
      if (round > MAX_ROUNDS || !isNew) return response;
      // While this request was under way, another one may have obtained an answer already.
      const answer = usable(key) ?? (await answerTo(response, request, key, scopes));
      if (answer === undefined || answer.header === held?.header) return response;
      answers.set(key, answer);
      held = answer;
      response = await next(authorised(request, held));
    }
    return response;
  }

  /** For a request that must not be sent without credentials: uses the challenge of the API's root, or else Basic. */
  async function beforehand(request: RegistryRequest, next: SendRequest, key: string): Promise<Answer | undefined> {
    const { challengeAt: url, credential, ...rest } = request;
    if (url === undefined || credential === undefined) return undefined;
    const root = await next({ ...rest, credential, method: 'GET', url, headers: { accept: '*/*' } });
    const isItsOwn = root.status === 401 && isFrom(request, root);
    // The root knows no repository. A scope in its challenge is only an example (ghcr.io:
    // `repository:user/image:pull`).
    const answer =
      (isItsOwn ? await answerTo(root, request, key, [request.scope]) : undefined) ?? basicAnswer(credential);
    answers.set(key, answer);
    return answer;
  }

  function usable(key: string): Answer | undefined {
    const held = answers.get(key);
    return held !== undefined && held.expiresAt > options.now() ? held : undefined;
  }

  async function answerTo(
    response: RegistryResponse,
    request: RegistryRequest,
    key: string,
    scopes: readonly string[],
  ): Promise<Answer | undefined> {
    const bearer = bearerOf(response);
    if (bearer !== undefined) {
      return flights.join([key, ...scopes].join(' '), request.signal, async (signal) => {
        const { text, expiresAt } = await fetchToken(bearer, { ...request, signal }, scopes);
        return { header: `Bearer ${text}`, expiresAt, scopes };
      });
    }
    const { credential } = request;
    const challenges = parseChallenges(response.headers['www-authenticate']);
    if (credential === undefined || !challenges.some(({ scheme }) => scheme === 'basic')) return undefined;
    // An identity token works only with a token service.
    if (credential.identityToken !== undefined && credential.password === '') return undefined;
    return basicAnswer(credential);
  }
}

function basicAnswer(credential: Credential): Answer {
  return { header: basic(credential), expiresAt: Number.POSITIVE_INFINITY };
}

function bearerOf(response: RegistryResponse): Challenge | undefined {
  const challenges = parseChallenges(response.headers['www-authenticate']);
  return challenges.find(({ scheme, parameters }) => scheme === 'bearer' && parameters.has('realm'));
}

function scopesOf(response: RegistryResponse): string[] {
  const bearer = bearerOf(response);
  return bearer === undefined ? [] : pullScopes(bearer);
}

/** Whether the host itself answered, and not one to which it redirects. */
function isFrom(request: RegistryRequest, response: RegistryResponse): boolean {
  return response.url.host === request.url.host;
}

/**
 * A token from an unverified connection, or for a host that the operator named, is not used over any other connection.
 */
function keyOf({ url, scope, policy, trust, credential }: RegistryRequest): string {
  return [url.origin, scope, policy, trust?.id ?? '', credential?.fingerprint ?? ''].join(' ');
}

function authorised(request: RegistryRequest, answer: Answer | undefined): RegistryRequest {
  return answer === undefined ? request : { ...request, headers: { ...request.headers, authorization: answer.header } };
}
