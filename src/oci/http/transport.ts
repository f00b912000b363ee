import { onAbort } from '../../kit/abort.ts';
import { type Clock, systemClock } from '../../kit/clock.ts';
import { parseUrl } from '../../kit/network/url.ts';
import { printableAscii } from '../../kit/printable.ts';
import {
  type FailedHost,
  ImageError,
  type ImageErrorCode,
  type ImageErrorDetails,
  type LoginSource,
  type RateLimit,
  type RegistryCode,
  type RequestPlace,
  type RequestRecord,
} from '../errors.ts';
import { statusText, subjectOf } from '../sentences.ts';
import { type AddressPolicy, forStrangers, type Trust } from './trust.ts';

/** A login, and a name for it by which its tokens and answers are kept apart. */
export type Credential = {
  readonly username: string;
  readonly password: string;
  /** A refresh token for the registry's token service (OAuth 2); if present, the user and password are not used. */
  readonly identityToken?: string;
  readonly fingerprint: string;
  readonly source?: LoginSource;
  /** Whether it belongs to the operator and not to a pod, so that everybody may get the answers that it leads to. */
  readonly shared: boolean;
  /** To be called when its registry refused it. */
  readonly onRefused?: () => void;
  /** To be called when its registry, or the token service, asked for it and accepted it. */
  readonly onAccepted?: () => void;
};

/** A request on its way down the chain of links. */
export type RegistryRequest = {
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** The scope of a token for it: `repository:<name>:pull`. A challenge may add others (decision 031). */
  readonly scope: string;
  /** The endpoint's name, for messages and metrics; it stays the same over redirects and token requests. */
  readonly registry: string;
  /** What the URL's host is; absent: the registry. */
  readonly hostIs?: FailedHost['is'];
  /** The login that a token is requested with: its request has no credential. */
  readonly login?: LoginSource;
  /** Called with each request that a redirect leads to. */
  readonly onHop?: (request: RegistryRequest) => void;
  /** Called with the limit that the registry itself names in an answer about a manifest, and not a host to which it redirects. */
  readonly onRateLimit?: ((limit: Omit<RateLimit, 'registry'>) => void) | undefined;
  readonly policy: AddressPolicy;
  /** Absent: verified with the built-in authorities and the configured ones. */
  readonly trust?: Trust | undefined;
  /** host[:port] that must also be in `registries.insecure` before the insecure trust applies to the URL's host. */
  readonly ledBy?: string;
  /** Headers from the endpoint's own configuration; they go to no other origin. */
  readonly endpointHeaders?: Readonly<Record<string, string>>;
  /** Absent: anonymous. */
  readonly credential?: Credential | undefined;
  /** The URL of the API's root, which may be asked for a challenge that the URL itself does not give. */
  readonly root?: URL;
  /** Whether the request must never be sent without credentials: the root is asked for the challenge instead. */
  readonly isPrivate?: boolean;
  /** The body of a POST. */
  readonly body?: string;
  readonly maxBytes: number;
  /** Milliseconds for the whole request instead of the configured ones. */
  readonly timeoutMs?: number;
  /**
   * Reads the body of a 2xx answer as it arrives; the answer's own body is then empty. If it returns early, the connection is
   * closed. Called at most once.
   */
  readonly read?: (body: AsyncIterable<Uint8Array>) => Promise<void>;
  readonly signal: AbortSignal;
};

export type RegistryResponse = {
  readonly status: number;
  /** Names in lower case; of a repeated header the first value, except for `www-authenticate`, whose values are joined. */
  readonly headers: Readonly<Record<string, string>>;
  /** Empty unless the status is 2xx. */
  readonly body: Uint8Array;
  /** The URL that answered, after redirects. */
  readonly url: URL;
  /** The code of the error in the body of a 4xx. */
  readonly registryCode?: RegistryCode;
  /** Whether the request had a credential that was not sent, because nothing asked for it. */
  readonly isAnonymous?: true;
  /** Whether the host answered 401 to a login that was sent to it as Basic. */
  readonly refusesLogin?: true;
};

export type SendRequest = (request: RegistryRequest) => Promise<RegistryResponse>;
/** One concern of a request: a link may change the request, send it again, or refuse it. */
export type Link = (request: RegistryRequest, next: SendRequest) => Promise<RegistryResponse>;

/** Joins links. The first link sees a request first and its response last. */
export function chain(links: readonly Link[], send: SendRequest): SendRequest {
  return links.reduceRight<SendRequest>((next, link) => (request) => link(request, next), send);
}

/**
 * Runs work under a deadline and the caller's signal; no timer or listener is left afterwards.
 *
 * @throws what the work throws; its signal's reason is `expired()` or the reason of `parent`
 */
export async function withDeadline<T>(
  milliseconds: number,
  parent: AbortSignal,
  expired: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
  after: Clock['after'] = systemClock.after,
): Promise<T> {
  parent.throwIfAborted();
  const controller = new AbortController();
  const cancel = after(milliseconds, () => controller.abort(expired()));
  const forget = onAbort(parent, () => controller.abort(parent.reason));
  try {
    return await work(controller.signal);
  } finally {
    cancel();
    forget();
  }
}

/** Limits the total time of all links below it, including redirects and bodies: undici's own time-outs let a slow body go on for ever. */
export function deadline(milliseconds: number, after?: Clock['after']): Link {
  return ({ timeoutMs = milliseconds, ...request }, next) => {
    let current: RegistryRequest = request;
    const onHop = (hop: RegistryRequest): void => {
      current = hop;
    };
    const late = () => {
      const message = `${subjectOf(current)} did not answer within ${timeoutMs / 1000} s`;
      return failure(current, 'timeout', message, {});
    };
    return withDeadline(timeoutMs, request.signal, late, (signal) => next({ ...request, signal, onHop }), after);
  };
}

/** Reports each request that passes, and the limit that its answer names. */
export function measure(report: (record: RequestRecord, place: RequestPlace) => void, now: () => number): Link {
  return async (request, next) => {
    const { registry, method } = request;
    const started = now();
    const done = (code: string): void =>
      report({ registry, method, code, seconds: (now() - started) / 1000 }, placeOf(request));
    try {
      const response = await next(request);
      done(String(response.status));
      const limit = request.url.pathname.includes('/manifests/') ? parseRateLimit(response.headers) : undefined;
      if (limit !== undefined) request.onRateLimit?.(limit);
      return response;
    } catch (error) {
      done(error instanceof ImageError ? error.code : 'unavailable');
      throw error;
    }
  };
}

/** Parses `ratelimit-limit` and `ratelimit-remaining`, each `100` or `100;w=21600`. Undefined unless both are there and are numbers. */
export function parseRateLimit(headers: RegistryResponse['headers']): Omit<RateLimit, 'registry'> | undefined {
  const { 'ratelimit-limit': limit, 'ratelimit-remaining': remaining } = headers;
  if (limit === undefined || remaining === undefined) return undefined;
  const [one, other] = [limit, remaining].map((text) => /^\s*(\d{1,9})\s*(?:;|$)/.exec(text)?.[1]);
  if (one === undefined || other === undefined) return undefined;
  const window = /;\s*w=(\d{1,9})\s*(?:;|$)/.exec(remaining)?.[1];
  return { limit: Number(one), remaining: Number(other), ...(window && { windowSeconds: Number(window) }) };
}

const PARTS: Readonly<Record<string, RequestPlace['of']>> = { manifests: 'manifest', blobs: 'blob', tags: 'tags' };

function placeOf({ url, hostIs, headers, credential, login }: RegistryRequest): RequestPlace {
  const [, part = ''] = /\/(manifests|blobs|tags)\//.exec(url.pathname) ?? [];
  const of = hostIs === 'token service' ? 'token' : hostIs === 'blob store' ? 'blob' : (PARTS[part] ?? 'API root');
  const source = login ?? (headers.authorization === undefined ? undefined : credential?.source);
  return { host: url.host, of, ...(source && { login: source }) };
}

export function isSuccess({ status }: Pick<RegistryResponse, 'status'>): boolean {
  return status >= 200 && status <= 299;
}

const MAX_REDIRECTS = 5;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** Returns where an answer redirects to; undefined if it does not, or not to a valid URL. */
export function redirectTo({ status, headers: { location }, url }: RegistryResponse): URL | undefined {
  return location === undefined || !REDIRECTS.includes(status) ? undefined : parseUrl(location, url);
}

/** Returns the settings of a URL's host[:port] that the operator named; undefined for all other hosts. */
export type Named = (url: URL) => { readonly policy: 'configured'; readonly trust?: Trust } | undefined;

/** Creates a link that sends one request after another, each as the answer to the one before leads to it; undefined ends that. */
export function follow(
  next: (current: RegistryRequest, response: RegistryResponse, hop: number) => RegistryRequest | undefined,
): Link {
  return async (request, send) => {
    let current = request;
    for (let hop = 0; ; hop += 1) {
      const response = await send(current);
      const following = next(current, response, hop);
      if (following === undefined) return response;
      current = following;
      request.onHop?.(current);
    }
  };
}

/**
 * Follows redirects: without credentials to another origin (scheme, host and port), and from https to http only if
 * `registries.insecure` names the host.
 */
export function followRedirects(named: Named): Link {
  return follow((current, response, hop) => {
    // Redirects to a login page take many forms.
    const refuse = (code: 'malformed' | 'forbidden-address', problem: string): ImageError =>
      failure(current, code, `${subjectOf(current)} ${problem}`, { byCredential: code === 'malformed' });
    if (!REDIRECTS.includes(response.status)) return undefined;
    if (hop === MAX_REDIRECTS) throw refuse('malformed', `redirects more than ${MAX_REDIRECTS} times`);
    const url = redirectTo(response);
    if (url === undefined) throw refuse('malformed', 'redirects without a valid Location');
    if (url.protocol !== 'https:' && url.protocol !== 'http:') {
      throw refuse('forbidden-address', 'redirects to a URL that is neither http nor https');
    }
    if (url.protocol === 'http:' && response.url.protocol === 'https:' && named(url)?.trust?.plain !== true) {
      const host = printableAscii(url.host, 100);
      throw refuse('forbidden-address', `redirects from https to http; registries.insecure: ["${host}"] allows it`);
    }
    if (url.username !== '' || url.password !== '') {
      throw refuse('forbidden-address', 'redirects to an address with user information');
    }
    return url.origin === response.url.origin ? { ...current, url } : elsewhere(current, url, named);
  });
}

/**
 * Returns the request for another origin: without its credential and without the settings of the first host (addresses,
 * certificates, headers). The settings of the other host apply: its TLS settings in any case, its allowed addresses
 * only if the operator named the first host, too.
 */
export function elsewhere(request: RegistryRequest, url: URL, named: Named): RegistryRequest {
  const { credential: _credential, root: _root, isPrivate: _isPrivate, onRateLimit: _onRateLimit, ...others } = request;
  const rest = others.url.pathname.includes('/blobs/') ? { ...others, hostIs: 'blob store' as const } : others;
  const headers = Object.fromEntries(
    Object.entries(rest.headers).filter(([name]) => !['authorization', 'cookie'].includes(name.toLowerCase())),
  );
  return towards({ ...rest, headers }, url, named);
}

/** Returns the request for another host that a registry leads to and for which the configuration may have settings. */
export function towards(request: RegistryRequest, url: URL, named: Named): RegistryRequest {
  const { trust, endpointHeaders: _headers, ...rest } = request;
  const known = named(url);
  const applied = known?.trust ?? (trust === undefined ? undefined : forStrangers(trust));
  // A registry that the operator did not name may not lead to an address that is allowed for a named host only.
  const isNamed = known !== undefined && request.policy === 'configured';
  const policy = isNamed ? 'configured' : request.policy === 'public' ? 'public' : 'registry';
  return { ...rest, url, policy, ...(applied === undefined ? {} : { trust: applied }) };
}

const MAX_RETRY_AFTER = 600_000;

/** Parses `Retry-After` (RFC 9110, section 10.2.3) in both its forms; milliseconds, or undefined if it is invalid. */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim() ?? '';
  const wait = /^\d{1,9}$/.test(text)
    ? Number(text) * 1000
    : /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)
      ? Date.parse(text) - now
      : Number.NaN;
  return wait > 0 ? Math.min(wait, MAX_RETRY_AFTER) : undefined;
}

/**
 * Returns the error that a status other than 2xx means for a lookup.
 *
 * @param what was requested, for example `the manifest`
 * @param ofTokenService whether a token service answered; its failures may depend on the credential
 */
export function statusError(
  response: RegistryResponse,
  registry: string,
  what: string,
  now: number,
  ofTokenService = false,
): ImageError {
  const { status, url, registryCode, isAnonymous } = response;
  const retryAfterMs = parseRetryAfter(response.headers['retry-after'], now);
  const isStore = what === 'the config blob' && subjectOf({ registry, url }) !== registry;
  const is = ofTokenService ? 'token service' : isStore ? 'blob store' : 'registry';
  const code = CODES.get(status) ?? (status >= 500 ? 'unavailable' : 'unsupported');
  return new ImageError(statusText({ registry, url }, status, code, what, registryCode), {
    code,
    endpoint: registry,
    status,
    registryCode,
    host: { name: url.host, is },
    isAnonymous: isAnonymous === true,
    refusesLogin: status === 401 && (ofTokenService || response.refusesLogin === true),
    byCredential: ofTokenService || code === 'unsupported',
    ...(status === 408 || status === 429 || status >= 500 ? { retryAfterMs } : {}),
  });
}

/** What statuses mean. ECR answers 400 to credentials of another registry. */
const CODES: ReadonlyMap<number, ImageError['code']> = new Map([
  ...[400, 401, 403, 451].map((status) => [status, 'denied'] as const),
  ...[404, 410].map((status) => [status, 'not-found'] as const),
  [408, 'timeout'],
  [429, 'rate-limited'],
]);

/** Returns the failure of a request, about the host of its URL. */
export function failure(
  { registry: endpoint, url, hostIs: is = 'registry' }: RegistryRequest,
  code: ImageErrorCode,
  message: string,
  more: Omit<Partial<ImageErrorDetails>, 'code'>,
): ImageError {
  return new ImageError(message, { code, endpoint, host: { name: url.host, is }, ...more });
}
