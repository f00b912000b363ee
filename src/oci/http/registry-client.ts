import { codeOf } from '../../kit/errors.ts';
import { isObject, parseObject } from '../../kit/json.ts';
import { createLru } from '../../kit/lru.ts';
import { parseUrl } from '../../kit/network/url.ts';
import { ImageError, REGISTRY_CODES, type RegistryCode, type ResolverTelemetry } from '../errors.ts';
import { connectionText, subjectOf, UNVERIFIED } from '../sentences.ts';
import { type AddressRules, createGuard, type Guard, type GuardOptions } from './address-guard.ts';
import { authenticate } from './authentication.ts';
import { ProxyFailure } from './proxy.ts';
import { followOnHost } from './token.ts';
import {
  chain,
  deadline,
  failure,
  followRedirects,
  measure,
  type Named,
  type RegistryRequest,
  type RegistryResponse,
  type SendRequest,
} from './transport.ts';
import { insecureTrust } from './trust.ts';

export type RegistryOptions = Omit<GuardOptions, keyof AddressRules | 'connectTimeoutMs'> & {
  readonly userAgent: string;
  /** host[:port] of registries with plain http or an unverifiable certificate; they may be on loopback. */
  readonly insecure: readonly string[];
  /**
   * host[:port] of the other hosts that the operator named, at this moment: they may be on loopback, and their certificates are verified.
   */
  readonly namedHosts?: () => ReadonlySet<string>;
  readonly addresses: AddressRules;
  /** Milliseconds for one request, including its redirects and its body. */
  readonly timeoutMs: number;
  readonly telemetry?: Partial<ResolverTelemetry>;
  /** Replaces the guarded connections, for tests. */
  readonly send?: SendRequest;
};

/** The share of a request's time that the connection may take. */
const CONNECT_SHARE = 2 / 3;

/**
 * Creates what sends requests to any registry, through challenges, deadline, redirects, metrics and guarded connections.
 *
 * @throws Error for invalid CIDRs in `addresses`
 */
export function createRegistry(options: RegistryOptions) {
  const { now, after, timeoutMs } = options;
  const insecure = new Set(options.insecure.map((host) => host.toLowerCase()));
  // Shorter than the request's own limit, so that a host that cannot be reached is not taken for one that is silent.
  const timeouts = { connectTimeoutMs: timeoutMs * CONNECT_SHARE, silenceMs: timeoutMs };
  const guard = createGuard({ ...options, ...options.addresses, ...timeouts });
  const wire = chain(
    [measure((record, place) => options.telemetry?.requested?.(record, place), now)],
    options.send ?? createSend(guard, options.userAgent),
  );
  const { isPublic, destroy } = guard;
  const tokens = chain([deadline(timeoutMs, after), followOnHost({ named, isPublic })], wire);
  const authentication = authenticate({ named, isPublic, now, send: tokens });
  return {
    send: chain([reportRefusals, authentication, deadline(timeoutMs, after), followRedirects(named)], wire),
    destroy,
  };

  /** Returns the settings of a host that the operator named, however the request gets there. */
  function named({ protocol, host, port }: URL): ReturnType<Named> {
    // A URL drops the default port of its scheme, but an operator may write it.
    const full = port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host;
    if (insecure.has(host) || insecure.has(full)) return { policy: 'configured', trust: insecureTrust };
    return options.namedHosts?.().has(host) ? { policy: 'configured' } : undefined;
  }
}

/** Reports that the registry itself, or its token service, refused a credential that was sent: 401 or 403. */
async function reportRefusals(request: RegistryRequest, next: SendRequest): Promise<RegistryResponse> {
  const report = (status: number | undefined): void => {
    if (status === 401 || status === 403) request.credential?.onRefused?.();
  };
  try {
    const response = await next(request);
    if (response.isAnonymous !== true && response.url.host === request.url.host) report(response.status);
    return response;
  } catch (error) {
    if (error instanceof ImageError) report(error.status);
    throw error;
  }
}

/** Codes of a TLS handshake with a server that certainly speaks another protocol. Excludes alerts, because only TLS has those. */
const NOT_TLS = /^(EPROTO|ERR_SSL_(?!.*ALERT))/;
/** Codes that such a server may cause as well, and also a registry with TLS that is just restarting. */
const HUNG_UP = /^(ECONNRESET|UND_ERR_SOCKET)$/;
/** Codes of a connection that was not made. Others may come after the request was sent, and concern its path alone. */
const NOT_CONNECTED =
  /^(ECONNREFUSED|E(HOST|NET)(UNREACH|DOWN)|EAI_.*|E(NOTFOUND|NODATA|SERVFAIL|REFUSED|TIMEOUT)|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|ERR_OSSL_.*)$/;
/** Codes of a host, or of a DNS server, that says nothing. */
const SILENT = /^(UND_ERR_(CONNECT|BODY)_TIMEOUT|ETIMEDOUT|ETIMEOUT)$/;
/** Bytes of the body of a refusal that are read. */
const MAX_REFUSAL = 16 * 1024;
/** The most remembered pairs of a trust and a host that may speak plain http; the operator names those. */
const MAX_SPOKEN = 10_000;

/** The result of one attempt: the answer, or the cause of the failure and the error for it. */
type Attempt = { readonly response: RegistryResponse } | { readonly cause: unknown; readonly error: ImageError };

/** Headers that no configuration may set: the user agent, those that the connection itself needs, and those for the next hop only. */
const RESERVED =
  /^(host|user-agent|accept-encoding|content-length|connection|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/**
 * The last link: sends one request over the guarded connections and reads its body within bounds.
 * If the trust allows plain http, it is tried after TLS. The one that worked is remembered until it fails.
 */
export function createSend(guard: Guard, userAgent: string): SendRequest {
  const spoken = createLru<'https' | 'http'>(MAX_SPOKEN);

  return async (request) => {
    const { url, trust } = request;
    if (trust?.plain !== true || url.protocol !== 'https:') return answerOf(await attempt(request));
    const open: RegistryRequest = { ...request, url: new URL(url.href.replace(/^https:/, 'http:')) };
    const key = `${trust.id} ${url.host}`;
    const known = spoken.get(key);
    if (known === 'http') {
      const plain = await attempt(open);
      // Servers with TLS answer 400 to plain http. TLS may have been put in front of the registry in the meantime.
      const isFinal = 'response' in plain ? plain.response.status !== 400 : plain.cause instanceof ImageError;
      const secure = isFinal ? undefined : await attempt(request);
      if (secure === undefined || !('response' in secure)) return answerOf(plain);
      spoken.set(key, 'https');
      return secure.response;
    }
    const secure = await attempt(request);
    if ('response' in secure) spoken.set(key, 'https');
    if ('response' in secure || !mayBePlain(secure.cause, url, known)) return answerOf(secure);
    const plain = await attempt(open);
    if ('response' in plain) {
      if (!isDoubtful(plain.response)) spoken.set(key, 'http');
      else if (plain.response.status === 400 && !NOT_TLS.test(codeOf(secure.cause))) throw secure.error;
    }
    return answerOf(plain);
  };

  /** @throws the signal's reason; every other failure is returned */
  async function attempt(request: RegistryRequest): Promise<Attempt> {
    try {
      return { response: await exchange(request) };
    } catch (cause) {
      if (request.signal.aborted) throw request.signal.reason;
      return { cause, error: describe(cause, request) };
    }
  }

  async function exchange(request: RegistryRequest): Promise<RegistryResponse> {
    const { method, signal, body: form } = request;
    const sent = { method, signal, headers: headersOf(request, userAgent), ...(form && { body: form }) };
    const { statusCode, headers, body } = await guard.request(request, sent);
    const flat = flatten(headers);
    const answer = { status: statusCode, headers: flat, url: request.url };
    const refuse = (code: 'malformed' | 'too-large', problem: string): ImageError => {
      body.on('error', () => undefined).destroy();
      return failure(request, code, `${subjectOf(request)} ${problem}`, { temporary: false });
    };
    const isRefusal = request.method !== 'HEAD' && statusCode >= 400 && statusCode <= 499;
    if (!isRefusal && (request.method === 'HEAD' || statusCode < 200 || statusCode > 299)) {
      // Read the rest, up to a limit, so that the connection can be used again.
      await body.dump({ limit: MAX_REFUSAL, signal: request.signal });
      return { ...answer, body: new Uint8Array() };
    }
    if (isRefusal) {
      // The status is the answer, also where its body breaks off.
      const registryCode = codeIn(await readUpTo(MAX_REFUSAL, body).catch(() => undefined));
      return { ...answer, body: new Uint8Array(), ...(registryCode === undefined ? {} : { registryCode }) };
    }
    const encoding = (flat['content-encoding'] ?? '').trim().toLowerCase();
    if (encoding !== '' && encoding !== 'identity')
      throw refuse('malformed', 'sent a compressed answer, which was not requested');
    if (request.read !== undefined) {
      // Ending the loop early destroys the body, and so the connection.
      await request.read(bytesOf(body));
      return { ...answer, body: new Uint8Array() };
    }
    const isTooLong = Number(flat['content-length'] ?? 0) > request.maxBytes;
    const whole = isTooLong ? undefined : await readUpTo(request.maxBytes, body);
    if (whole === undefined) throw refuse('too-large', `sent more than ${request.maxBytes} bytes`);
    return { ...answer, body: whole };
  }
}

/** Returns undefined if there is more; the connection is closed then. */
async function readUpTo(limit: number, body: AsyncIterable<unknown>): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bytesOf(body)) {
    size += chunk.byteLength;
    if (size > limit) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

/** Returns the code of the first error in the body of a refusal (distribution specification, "Error Codes"). */
function codeIn(body: Uint8Array | undefined): RegistryCode | undefined {
  const { errors } = parseObject(body ?? '') ?? {};
  const [first] = Array.isArray(errors) ? errors : [];
  return isObject(first) ? REGISTRY_CODES.find((code) => code === first.code) : undefined;
}

async function* bytesOf(body: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) if (chunk instanceof Uint8Array) yield chunk;
}

function answerOf(attempt: Attempt): RegistryResponse {
  if ('response' in attempt) return attempt.response;
  throw attempt.error;
}

/** Whether a failure over TLS may come from a registry without TLS; the operator has allowed plain http there. */
function mayBePlain(error: unknown, url: URL, known: 'https' | undefined): boolean {
  const code = codeOf(error);
  // A registry that spoke TLS before may be restarting. That does not justify sending credentials unencrypted.
  if (known !== undefined) return NOT_TLS.test(code);
  // With a proxy, it is the proxy that finds the port closed, or refuses to open that port.
  if (error instanceof ProxyFailure) return error.status !== undefined && error.status !== 407;
  return NOT_TLS.test(code) || HUNG_UP.test(code) || (code === 'ECONNREFUSED' && url.port === '');
}

/**
 * Whether an answer over plain http may come from something other than a registry that speaks it: servers with TLS
 * answer 400 to plain http, a proxy answers for a host that is down, and port 80 may only redirect to https.
 */
function isDoubtful({ status, headers, url }: RegistryResponse): boolean {
  const target = headers.location === undefined ? undefined : parseUrl(headers.location, url);
  return status === 400 || status >= 500 || (target?.protocol === 'https:' && target.hostname === url.hostname);
}

/** Returns the headers of the configuration, overridden by the program's own. */
function headersOf({ headers, endpointHeaders = {} }: RegistryRequest, userAgent: string): Record<string, string> {
  const all = [...Object.entries(endpointHeaders), ...Object.entries(headers)];
  const lower = all.map(([name, value]) => [name.toLowerCase(), value] as const);
  const allowed = Object.fromEntries(lower.filter(([name]) => !RESERVED.test(name)));
  return { ...allowed, 'user-agent': userAgent, 'accept-encoding': 'identity' };
}

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const flat: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(headers)) {
    const text = Array.isArray(value) ? (name === 'www-authenticate' ? value.join(', ') : value[0]) : value;
    if (text !== undefined) flat[name.toLowerCase()] = text;
  }
  return flat;
}

/** Describes a failure below HTTP. Its own message may contain resolved addresses, so only its code is used. */
function describe(error: unknown, request: RegistryRequest): ImageError {
  if (error instanceof ImageError) return error;
  const code = codeOf(error);
  const isUnreachable =
    error instanceof ProxyFailure || [NOT_CONNECTED, NOT_TLS, UNVERIFIED].some((codes) => codes.test(code));
  const more = isUnreachable ? { unreachable: request.url.host } : {};
  if (error instanceof ProxyFailure) {
    return failure(request, 'unavailable', `${subjectOf(request)} could not be reached: ${error.message}`, more);
  }
  // Not all errors of the HTTP parser have a code.
  if (
    (error instanceof Error && error.name === 'HTTPParserError') ||
    /^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_|UND_ERR_REQ_)/.test(code)
  ) {
    return failure(request, 'malformed', `${subjectOf(request)} sent an invalid HTTP response`, {});
  }
  return failure(request, SILENT.test(code) ? 'timeout' : 'unavailable', connectionText(code, request), more);
}
