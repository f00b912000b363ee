import type { LRUCache } from 'lru-cache';
import { createFlights } from '../../kit/flights.ts';
import { createLru } from '../../kit/lru.ts';
import { ImageError } from '../errors.ts';
import { type AskedToken, basic, fetchToken, readChallenge, type TokenOptions } from './token.ts';
import {
  type Credential,
  elsewhere,
  isSuccess,
  type Link,
  type RegistryRequest,
  type RegistryResponse,
  type SendRequest,
} from './transport.ts';

/** The value of an `Authorization` header, and the scopes that its token was requested for. */
type AuthReply = { readonly header: string; readonly until: number; readonly scopes?: readonly string[] };

/** What a project, or the root of a registry's API, last asked for. */
type Wish = {
  /** Absent: nothing that can be answered. */
  readonly challenge?: AskedToken;
  readonly until: number;
  /** The scopes for which the answer was accepted; of a root: none. */
  readonly scopes: readonly string[];
  /** Whether the registry hides what may not be read, so that its root asks for all of it. */
  readonly hides?: true;
};

/** Bytes; registries choose the length of their tokens, and authors of pods the registries. */
const MAX_ANSWERS = 16 * 1024 * 1024;
const MAX_WISHES = 8 * 1024 * 1024;
/** The bytes of an entry without its texts. */
const ENTRY_BYTES = 300;
/** Milliseconds: longer than the time between two checks of a tag, which then begin with the token. */
const PROJECT_KEPT = 3_600_000;
const ROOT_KEPT = 600_000;
/** The number of repositories that must have challenged before the next one is not asked first. */
const HABIT = 2;
/** The most challenges of one host that are answered for one request. A second one is answered only if it names a new scope. */
const MAX_ROUNDS = 2;

/**
 * Answers challenges: anonymous, Basic and Bearer (the distribution project's token specification). A token is kept for
 * (host, scope, credential) until it expires, and is requested once, however many requests wait for it. A credential is
 * sent only after a 401 from its own host, to that host or to the realm that it names. A 401 from a host that a
 * redirect leads to is answered anonymously, and does not invalidate the answer to the first host.
 *
 * What a repository asked for is known for an hour: it gets the answer at once. So does the whole project once two of its
 * repositories have asked, until the project answers a request without a challenge. Behind a gateway, each project may lead to another
 * registry; none may get the credentials of the others, or hold them up.
 *
 * A registry that hides what may not be read answers 403 or 404 without a challenge. If there is a credential, its root
 * is asked for the challenge, once for all images; so is the root of a registry that may not be asked anonymously.
 */
export function authenticate(options: TokenOptions): Link {
  const state = createAuthState(options);
  return async (request, next) => {
    const response = await converse(state, request, next);
    if (response.status !== 401 || isFrom(request, response)) return response;
    // If that host redirects as well and a third host answers 401, that 401 is the result.
    return converse(state, elsewhere(request, response.url, options.named), next, response);
  };
}

/** What registries have asked for, and what was answered. */
type AuthState = ReturnType<typeof createAuthState>;

function createAuthState(options: TokenOptions) {
  return {
    ...{ ...options, unusual: createLru<true>(1000), tokens: createFlights<AuthReply>(), roots: createFlights<Wish>() },
    answers: createLru<AuthReply>(MAX_ANSWERS, ({ header, scopes = [] }, key) => bytesOf(header, key, ...scopes)),
    wishes: createLru<Wish>(MAX_WISHES, ({ challenge, scopes }, key) =>
      bytesOf(challenge?.text ?? '', challenge?.text ?? '', key, ...scopes),
    ),
  };
}

/** Sends the request to its own host and answers the challenges; `refusal` is a 401 of that host that has already arrived. */
async function converse(
  state: AuthState,
  request: RegistryRequest,
  next: SendRequest,
  refusal?: RegistryResponse,
): Promise<RegistryResponse> {
  const { answers, wishes, now } = state;
  const { credential } = request;
  const key = keyOf(request);
  let held = usable(answers, key, now()) ?? (refusal === undefined ? await foreseen(state, request, next) : undefined);
  if (held !== undefined) answers.set(key, held);
  let response = refusal === undefined || held !== undefined ? await next(authorised(request, held)) : refusal;
  if (held === undefined && isFrom(request, response) && isSuccess(response)) wishes.delete(projectKeyOf(request));
  let challenge: AskedToken | undefined;
  for (let round = 1; ; round += 1) {
    const isOwn = isFrom(request, response);
    const isHidden = held === undefined && credential !== undefined && [403, 404].includes(response.status);
    if (!isHidden && (response.status !== 401 || !isOwn)) break;
    if (answers.get(key) === held) answers.delete(key);
    const wish = isHidden ? isOwn && (await hidingRoot(state, request, next)) : wishOf(response, now() + PROJECT_KEPT);
    if (!wish || (isHidden && wish.challenge === undefined)) return { ...response, isAnonymous: true };
    const scopes = [...new Set([request.scope, ...(wish.challenge?.scopes ?? [])])];
    const isNew = round === 1 || scopes.some((scope) => held?.scopes?.includes(scope) === false);
    if (round > MAX_ROUNDS || !isNew) return withLogin(response, held);
    // While this request was under way, another one may have obtained an answer already. If there is none, another credential may be
    // of the kind that is asked for.
    const answer = usable(answers, key, now()) ?? (await answerTo(state, wish, request, scopes));
    if (answer === undefined || answer.header === held?.header) return withLogin(response, held);
    answers.set(key, answer);
    held = answer;
    challenge = wish.challenge;
    response = await next(authorised(request, held));
  }
  if (held !== undefined && isAcceptance(response, held)) credential?.onAccepted?.();
  if (challenge !== undefined && isSuccess(response)) {
    // A registry with a name of its own for the repository must say it each time.
    if (challenge.scopes.some((scope) => scope !== request.scope)) wishes.delete(projectKeyOf(request));
    else remember(state, challenge, request);
  }
  return response;
}

/** Remembers a challenge whose answer was accepted. */
function remember({ wishes, now }: AuthState, challenge: AskedToken, request: RegistryRequest): void {
  const key = projectKeyOf(request);
  const before = wishes.get(key);
  const others =
    before?.challenge?.realm === challenge.realm
      ? before.scopes.filter((scope) => scope !== request.scope).slice(-HABIT)
      : [];
  wishes.set(key, { challenge, scopes: [...others, request.scope], until: now() + PROJECT_KEPT });
}

/** Returns the answer to what is known to be asked for, if a request without it is not needed, or not allowed. */
async function foreseen(state: AuthState, request: RegistryRequest, next: SendRequest) {
  const { wishes, now } = state;
  const key = projectKeyOf(request);
  const wish = usable(wishes, key, now());
  if (wish !== undefined && (wish.scopes.includes(request.scope) || wish.scopes.length >= HABIT)) {
    try {
      return await answerTo(state, wish, request);
    } catch (error) {
      if (!(error instanceof ImageError) || request.signal.aborted) throw error;
      wishes.delete(key);
      // A credential that was refused is not sent again. Anything else may concern the other repositories only.
      if (error.code === 'denied') throw error;
    }
  }
  const { credential } = request;
  if (credential === undefined || request.root === undefined) return undefined;
  const isPrivate = request.isPrivate === true;
  const root = isPrivate ? await rootOf(state, request, request.root, next) : usable(wishes, rootKeyOf(request), now());
  if (root === undefined || !(isPrivate || root.hides)) return undefined;
  return (await answerTo(state, root, request)) ?? (isPrivate ? basicAnswer(root, credential) : undefined);
}

/** Asks the root of the API for its challenge, without a credential, unless that is known. */
async function rootOf(state: AuthState, request: RegistryRequest, url: URL, next: SendRequest, hides?: true) {
  const { wishes, roots, now } = state;
  const { credential: _credential, read: _read, ...rest } = request;
  const key = rootKeyOf(request);
  const known = usable(wishes, key, now());
  const root =
    known ??
    (await roots.join(key, request.signal, async (signal) => {
      const response = await next({ ...rest, signal, method: 'GET', url, headers: { accept: '*/*' } });
      return wishOf(response.status === 401 && isFrom(request, response) ? response : undefined, now() + ROOT_KEPT);
    }));
  if (known === undefined || hides) wishes.set(key, { ...root, ...(hides && { hides }) });
  return root;
}

/** Asks the root of a registry that hides what may not be read. */
async function hidingRoot(state: AuthState, request: RegistryRequest, next: SendRequest) {
  try {
    return request.root && (await rootOf(state, request, request.root, next, true));
  } catch (error) {
    // The answer to the request itself counts.
    if (!(error instanceof ImageError) || request.signal.aborted) throw error;
    return undefined;
  }
}

function wishOf(response: RegistryResponse | undefined, until: number): Wish {
  const challenge = readChallenge(response?.headers['www-authenticate']);
  return { until, scopes: [], ...(challenge && { challenge }) };
}

function usable<T extends AuthReply | Wish>(entries: LRUCache<string, T>, key: string, now: number): T | undefined {
  const held = entries.get(key);
  return held !== undefined && held.until > now ? held : undefined;
}

/** Answers a challenge of the repository's own, or of its project or root, which know no other scope of it. */
async function answerTo(
  state: AuthState,
  wish: Wish,
  request: RegistryRequest,
  scopes: readonly string[] = [request.scope],
): Promise<AuthReply | undefined> {
  const { bearer, isBasic } = wish.challenge ?? {};
  if (bearer !== undefined) {
    try {
      return await state.tokens.join([keyOf(request), ...scopes].join(' '), request.signal, async (signal) => {
        const { text, until } = await fetchToken(state, bearer, { ...request, signal }, scopes);
        return { header: `Bearer ${text}`, until, scopes };
      });
    } catch (error) {
      throw request.signal.aborted ? error : ofLogin(error);
    }
  }
  const { credential } = request;
  if (credential === undefined || isBasic !== true) return undefined;
  // An identity token works only with a token service.
  if (credential.identityToken !== undefined && credential.password === '') return undefined;
  return basicAnswer(wish, credential);
}

/** Returns the failure of a token service that does not answer as one that another credential may not meet. */
function ofLogin(error: unknown): unknown {
  if (!(error instanceof ImageError) || !['unavailable', 'timeout'].includes(error.code)) return error;
  return new ImageError(error.message, { ...error, byCredential: true, cause: error });
}

/** Holds for as long as the challenge is known: Harbor asks for Basic after a token was revoked, and otherwise for Bearer. */
function basicAnswer({ until }: Wish, credential: Credential): AuthReply {
  return { header: basic(credential), until };
}

/** Says of a 401 to Basic that the login was refused. */
function withLogin(response: RegistryResponse, held: AuthReply | undefined): RegistryResponse {
  return held?.header.startsWith('Basic ') ? { ...response, refusesLogin: true } : response;
}

/** Whether a login was accepted. A token service has accepted it before a registry says that something is missing. */
function isAcceptance({ status }: RegistryResponse, { header }: AuthReply): boolean {
  return isSuccess({ status }) || status === 304 || (header.startsWith('Bearer ') && [403, 404].includes(status));
}

/** Whether the host itself answered, and not one to which it redirects. */
function isFrom(request: RegistryRequest, response: RegistryResponse): boolean {
  return response.url.host === request.url.host;
}

/** Returns a key for the repositories of a project, which are expected to challenge in the same way. */
function projectKeyOf(request: RegistryRequest): string {
  const { credential, scope } = request;
  const project = scope.split(':', 2)[1]?.split('/', 1)[0] ?? '';
  return `${rootKeyOf(request)} ${project} ${credential?.fingerprint ?? ''}`;
}

function rootKeyOf({ url, root, policy, trust }: RegistryRequest): string {
  return [url.origin, root?.pathname ?? '', policy, trust?.id ?? ''].join(' ');
}

/** A token from an unverified connection, or for a host that the operator named, is not used over any other connection. */
function keyOf({ url, scope, policy, trust, credential }: RegistryRequest): string {
  return [url.origin, scope, policy, trust?.id ?? '', credential?.fingerprint ?? ''].join(' ');
}

function bytesOf(...texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + 2 * text.length, ENTRY_BYTES);
}

function authorised(request: RegistryRequest, answer: AuthReply | undefined): RegistryRequest {
  return answer === undefined ? request : { ...request, headers: { ...request.headers, authorization: answer.header } };
}
