import { LRUCache } from 'lru-cache';
import { parseChallenges } from './challenge.ts';
import { createFlights } from './flights.ts';
import { basic, createFetchToken, type TokenOptions } from './token.ts';
import { elsewhere, type Link, type Request, type Response, type Send } from './transport.ts';

/** The value of an `Authorization` header. */
type Answer = { readonly header: string; readonly expiresAt: number };

const MAX_ANSWERS = 10_000;

/**
 * Answers challenges: anonymous, Basic and Bearer (the distribution project's token specification). A token is kept for
 * (host, scope, credential) until it expires, and asked for once, however many requests wait for it. A credential moves
 * only on a 401 from its own host, to that host or to the realm that it names; a 401 met after a redirect is answered
 * anonymously.
 */
export function authenticate(options: TokenOptions): Link {
  const answers = new LRUCache<string, Answer>({ max: MAX_ANSWERS });
  const flights = createFlights<Answer>();
  const fetchToken = createFetchToken(options);

  return (request, next) => ask(request, next, false);

  async function ask(request: Request, next: Send, isStranger: boolean): Promise<Response> {
    const key = keyOf(request);
    const held = usable(key) ?? (await beforehand(request, next, key));
    const response = await next(authorised(request, held));
    if (response.status !== 401) return response;
    if (answers.get(key) === held) answers.delete(key);
    if (response.url.host !== request.url.host) {
      // Should the stranger redirect as well and end in a 401 again, that stands.
      return isStranger ? response : ask(elsewhere(request, response.url), next, true);
    }
    // While this request was under way, another may have been answered already.
    const answer = usable(key) ?? (await answerTo(response, request, key));
    if (answer === undefined || answer.header === held?.header) return response;
    answers.set(key, answer);
    const second = await next(authorised(request, answer));
    if (second.status === 401 && answers.get(key) === answer) answers.delete(key);
    return second;
  }

  /** For a request that may not go out without credentials: by the challenge of the API's root, and else Basic. */
  async function beforehand(request: Request, next: Send, key: string): Promise<Answer | undefined> {
    const { challengeAt: url, credential, ...rest } = request;
    if (url === undefined || credential === undefined) return undefined;
    const root = await next({ ...rest, credential, method: 'GET', url, headers: { accept: '*/*' } });
    const isItsOwn = root.status === 401 && root.url.host === request.url.host;
    const answer = (isItsOwn ? await answerTo(root, request, key) : undefined) ?? {
      header: basic(credential),
      expiresAt: Number.POSITIVE_INFINITY,
    };
    answers.set(key, answer);
    return answer;
  }

  function usable(key: string): Answer | undefined {
    const held = answers.get(key);
    return held !== undefined && held.expiresAt > options.now() ? held : undefined;
  }

  async function answerTo(response: Response, request: Request, key: string): Promise<Answer | undefined> {
    const challenges = parseChallenges(response.headers['www-authenticate']);
    const bearer = challenges.find(({ scheme, parameters }) => scheme === 'bearer' && parameters.has('realm'));
    if (bearer !== undefined) {
      return flights.join(key, request.signal, async (signal) => {
        const { text, expiresAt } = await fetchToken(bearer, { ...request, signal });
        return { header: `Bearer ${text}`, expiresAt };
      });
    }
    const { credential } = request;
    if (credential === undefined || !challenges.some(({ scheme }) => scheme === 'basic')) return undefined;
    // An identity token is good for a token service only.
    if (credential.identityToken !== undefined && credential.password === '') return undefined;
    return { header: basic(credential), expiresAt: Number.POSITIVE_INFINITY };
  }
}

/** What was found out over a connection that nobody verifies, or for a named host, is not used over another. */
function keyOf({ url, scope, policy, trust, credential }: Request): string {
  return [url.origin, scope, policy, trust?.id ?? '', credential?.fingerprint ?? ''].join(' ');
}

function authorised(request: Request, answer: Answer | undefined): Request {
  return answer === undefined ? request : { ...request, headers: { ...request.headers, authorization: answer.header } };
}
