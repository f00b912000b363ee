import { createFlights } from '../../kit/flights.ts';
import { createLru } from '../../kit/lru.ts';
import { ImageError } from '../errors.ts';
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

/** What the root of a registry's API answered: a challenge, or nothing of use. */
type Root = { readonly challenge?: RegistryResponse; readonly until: number };

/** The last challenge of a project whose answer it has accepted, and the scopes for which that was so. */
type Habit = { readonly challenge: RegistryResponse; readonly scopes: ReadonlySet<string>; readonly until: number };

/** Bytes; registries choose the length of their tokens, and authors of pods the registries. */
const MAX_ANSWERS = 16 * 1024 * 1024;
const MAX_ROOTS = 4 * 1024 * 1024;
/** The bytes of an entry without its texts. */
const ENTRY_BYTES = 300;
const MAX_HABITS = 4 * 1024 * 1024;
/** Milliseconds for which the answer of a registry's root is kept, and its habit of challenging. */
const ROOT_KEPT = 600_000;
/** The number of repositories that must have challenged before the next one is not asked first. */
const HABIT = 2;
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
 *
 * A project that has challenged requests for two repositories is not asked for its challenge again: the token for its next repository
 * is requested at once, until the project answers a request without a challenge. Behind a gateway, each project may lead to another
 * registry; none may get the credentials of the others, or hold them up.
 *
 * A registry that hides what may not be read answers 403 or 404 without a challenge. If there is a credential, its root
 * is asked for the challenge, once for all images.
 */
export function authenticate(options: TokenOptions): Link {
  const answers = createLru<Answer>(MAX_ANSWERS, ({ header, scopes = [] }, key) =>
    scopes.reduce((sum, scope) => sum + 2 * scope.length, ENTRY_BYTES + 2 * (header.length + key.length)),
  );
  const flights = createFlights<Answer>();
  /** The roots of registries that hide what may not be read. */
  const roots = createLru<Root>(
    MAX_ROOTS,
    ({ challenge }, key) => ENTRY_BYTES + 2 * (key.length + (challenge?.headers['www-authenticate'] ?? '').length),
  );
  const asked = createFlights<Root>();
  const habits = createLru<Habit>(
    MAX_HABITS,
    ({ challenge, scopes }, key) =>
      [...scopes].reduce((sum, scope) => sum + 2 * scope.length, ENTRY_BYTES + 2 * key.length) +
      2 * (challenge.headers['www-authenticate'] ?? '').length,
  );
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
    let held =
      usable(key) ??
      (await beforehand(request, next, key)) ??
      (await hidden(request, key)) ??
      (refusal === undefined ? await habitual(request, key) : undefined);
    let response = refusal === undefined || held !== undefined ? await next(authorised(request, held)) : refusal;
    if (held === undefined && isFrom(request, response) && isSuccess(response)) habits.delete(habitKeyOf(request));
    let challenge: RegistryResponse | undefined;
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
      challenge = response;
      response = await next(authorised(request, held));
    }
    if (challenge !== undefined && isSuccess(response)) remember(challenge, request);
    if (held !== undefined || !isHiding(request, response)) return response;
    if (!isFrom(request, response)) return { ...response, isAnonymous: true };
    await askRoot(request, next);
    held = await hidden(request, key);
    if (held !== undefined) return next(authorised(request, held));
    // Another credential may be of the kind that the root asks for.
    return roots.get(rootKeyOf(request))?.challenge === undefined ? { ...response, isAnonymous: true } : response;
  }

  /** Remembers a challenge whose answer was accepted. */
  function remember(challenge: RegistryResponse, request: RegistryRequest): void {
    const key = habitKeyOf(request);
    // A registry with a name of its own for the repository must say it each time.
    if (scopesOf(challenge).some((scope) => scope !== request.scope)) return void habits.delete(key);
    const before = habits.get(key);
    const isSame =
      before?.challenge.headers['www-authenticate'] !== undefined && realmOf(before.challenge) === realmOf(challenge);
    const scopes = new Set([...(isSame ? [...before.scopes].slice(-HABIT) : []), request.scope]);
    habits.set(key, { challenge, scopes, until: options.now() + ROOT_KEPT });
  }

  /** Returns what the project is used to ask for, if it has asked for it for other repositories. */
  async function habitual(request: RegistryRequest, key: string): Promise<Answer | undefined> {
    const habitKey = habitKeyOf(request);
    const habit = habits.get(habitKey);
    if (habit === undefined || habit.until <= options.now() || habit.scopes.size < HABIT) return undefined;
    try {
      const answer = await answerTo(habit.challenge, request, key, [request.scope]);
      if (answer !== undefined) answers.set(key, answer);
      return answer;
    } catch (error) {
      // A credential that was refused is not sent again. Anything else may concern the other repositories only.
      if (!(error instanceof ImageError) || request.signal.aborted || error.code === 'denied') throw error;
      habits.delete(habitKey);
      return undefined;
    }
  }

  /** Returns what the challenge of a root asks for, if the registry is known to hide what may not be read. */
  async function hidden(request: RegistryRequest, key: string): Promise<Answer | undefined> {
    const root = roots.get(rootKeyOf(request));
    if (request.credential === undefined || root?.challenge === undefined || root.until <= options.now()) {
      return undefined;
    }
    const answer = await answerTo(root.challenge, request, key, [request.scope]);
    if (answer !== undefined) answers.set(key, answer);
    return answer;
  }

  /** Asks the root of the registry for its challenge, without a credential, unless that is known. */
  async function askRoot(request: RegistryRequest, next: SendRequest): Promise<void> {
    const { root: url, credential: _credential, ...rest } = request;
    const key = rootKeyOf(request);
    if (url === undefined || (roots.get(key)?.until ?? 0) > options.now()) return;
    try {
      const root = await asked.join(key, request.signal, async (signal) => {
        const response = await next({ ...rest, signal, method: 'GET', url, headers: { accept: '*/*' } });
        const isItsOwn = response.status === 401 && isFrom(request, response);
        const isUsable = isItsOwn && (bearerOf(response) !== undefined || wantsBasic(response));
        return { until: options.now() + ROOT_KEPT, ...(isUsable ? { challenge: response } : {}) };
      });
      roots.set(key, root);
    } catch (error) {
      // The answer to the request itself counts.
      if (!(error instanceof ImageError) || request.signal.aborted) throw error;
    }
  }

  /** For a request that must not be sent without credentials: uses the challenge of the API's root, or else Basic. */
  async function beforehand(request: RegistryRequest, next: SendRequest, key: string): Promise<Answer | undefined> {
    const { root: url, isPrivate, credential, ...rest } = request;
    if (isPrivate !== true || url === undefined || credential === undefined) return undefined;
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
      try {
        return await flights.join([key, ...scopes].join(' '), request.signal, async (signal) => {
          const { text, expiresAt } = await fetchToken(bearer, { ...request, signal }, scopes);
          return { header: `Bearer ${text}`, expiresAt, scopes };
        });
      } catch (error) {
        throw request.signal.aborted ? error : ofLogin(error);
      }
    }
    const { credential } = request;
    if (credential === undefined || !wantsBasic(response)) return undefined;
    // An identity token works only with a token service.
    if (credential.identityToken !== undefined && credential.password === '') return undefined;
    return basicAnswer(credential);
  }
}

/** Returns the failure of a token service that does not answer as one that another credential may not meet. */
function ofLogin(error: unknown): unknown {
  if (!(error instanceof ImageError) || !['unavailable', 'timeout'].includes(error.code)) return error;
  const { code, temporary, retryAfterMs, endpoint, unreachable, status, isUnanswered } = error;
  const details = { code, temporary, retryAfterMs, endpoint, unreachable, status, isUnanswered };
  return new ImageError(error.message, { ...details, byCredential: true, cause: error });
}

/** Whether a registry answers as those do that hide what may not be read, to a request whose credential was not sent. */
function isHiding(request: RegistryRequest, response: RegistryResponse): boolean {
  return request.credential !== undefined && [403, 404].includes(response.status);
}

function basicAnswer(credential: Credential): Answer {
  return { header: basic(credential), expiresAt: Number.POSITIVE_INFINITY };
}

function bearerOf(response: RegistryResponse): Challenge | undefined {
  const challenges = parseChallenges(response.headers['www-authenticate']);
  return challenges.find(({ scheme, parameters }) => scheme === 'bearer' && parameters.has('realm'));
}

function wantsBasic(response: RegistryResponse): boolean {
  return parseChallenges(response.headers['www-authenticate']).some(({ scheme }) => scheme === 'basic');
}

function scopesOf(response: RegistryResponse): string[] {
  const bearer = bearerOf(response);
  return bearer === undefined ? [] : pullScopes(bearer);
}

/** Whether the host itself answered, and not one to which it redirects. */
function isFrom(request: RegistryRequest, response: RegistryResponse): boolean {
  return response.url.host === request.url.host;
}

function isSuccess({ status }: RegistryResponse): boolean {
  return status >= 200 && status <= 299;
}

/** Returns what a challenge asks for, without the scope. */
function realmOf(response: RegistryResponse): string {
  const { parameters } = bearerOf(response) ?? {};
  return parameters === undefined ? 'basic' : `${parameters.get('realm')} ${parameters.get('service') ?? ''}`;
}

/** Returns a key for the repositories of a project, which are expected to challenge in the same way. */
function habitKeyOf(request: RegistryRequest): string {
  const { credential, scope } = request;
  const project = scope.split(':', 2)[1]?.split('/', 1)[0] ?? '';
  return `${rootKeyOf(request)} ${project} ${credential?.fingerprint ?? ''}`;
}

function rootKeyOf({ url, root, policy, trust }: RegistryRequest): string {
  return [url.origin, root?.pathname ?? '', policy, trust?.id ?? ''].join(' ');
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
