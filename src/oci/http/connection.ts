import type { Dispatcher } from 'undici';
import { codeOf } from '../../kit/errors.ts';
import { createLru } from '../../kit/lru.ts';
import { printableAscii } from '../../kit/printable.ts';
import { ImageError } from '../errors.ts';
import type { Guard } from './address-guard.ts';
import type { ForwardProxy, ProxySelector } from './proxy.ts';
import type { RegistryRequest, RegistryResponse, SendRequest } from './transport.ts';
import { ProxyFailure, proxyAnswered } from './tunnel.ts';
import { parseUrl } from './url.ts';

export type ConnectionOptions = {
  readonly guard: Guard;
  readonly userAgent: string;
  readonly proxy?: ProxySelector;
};

/**
 * Codes of a TLS handshake with a server that certainly speaks another protocol. Excludes alerts, because only TLS has
 * those.
 */
const NOT_TLS = /^(EPROTO|ERR_SSL_(?!.*ALERT))/;
/**
 * The codes among them that mean that the other side does not speak TLS at all; the others are about a version or a
 * cipher.
 */
const NO_TLS = /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL))$/;
/** Codes that such a server may cause as well, and also a registry with TLS that is just restarting. */
const HUNG_UP = /^(ECONNRESET|UND_ERR_SOCKET)$/;
/** Codes of a connection that was not made. Others may come after the request was sent, and concern its path alone. */
const NOT_CONNECTED =
  /^(ECONNREFUSED|E(HOST|NET)(UNREACH|DOWN)|EAI_.*|E(NOTFOUND|NODATA|SERVFAIL|REFUSED|TIMEOUT)|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|ERR_OSSL_.*)$/;
/** Codes of a certificate that cannot be verified. */
const UNVERIFIED = /CERT|ISSUER|SIGNATURE|ALTNAME/;
/** The most remembered pairs of a trust and a host that may speak plain http; the operator names those. */
const MAX_SPOKEN = 10_000;

/** The result of one attempt: the answer, or the cause of the failure and the error for it. */
type Attempt = { readonly response: RegistryResponse } | { readonly cause: unknown; readonly error: ImageError };

/**
 * Headers that no configuration may set: the user agent, those that the connection itself needs, and those for the next
 * hop only.
 */
const RESERVED =
  /^(host|user-agent|accept-encoding|content-length|connection|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/**
 * The last link: sends one request over the guarded connections and reads its body within bounds.
 * If the trust allows plain http, it is tried after TLS. The one that worked is remembered until it fails.
 */
export function createSend(options: ConnectionOptions): SendRequest {
  const spoken = createLru<'https' | 'http'>(MAX_SPOKEN);
  const proxyOf = (url: URL): ForwardProxy | undefined => options.proxy?.(url);

  return async (request) => {
    const { url, trust } = request;
    if (trust?.plain !== true || url.protocol !== 'https:') return answerOf(await attempt(request));
    const open: RegistryRequest = { ...request, url: new URL(url.href.replace(/^https:/, 'http:')) };
    const key = `${trust.id} ${url.host}`;
    const known = spoken.get(key);
    if (known === 'http') {
      const plain = await attempt(open);
      // Servers with TLS answer 400 to plain http. TLS may have been put in front of the registry in the meantime.
      if ('response' in plain ? plain.response.status !== 400 : plain.cause instanceof ImageError)
        return answerOf(plain);
      const secure = await attempt(request);
      if (!('response' in secure)) return answerOf(plain);
      spoken.set(key, 'https');
      return secure.response;
    }
    const secure = await attempt(request);
    if ('response' in secure) {
      spoken.set(key, 'https');
      return secure.response;
    }
    if (!mayBePlain(secure.cause, url, known)) throw secure.error;
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
      return { cause, error: describe(cause, request, proxyOf(request.url)) };
    }
  }

  /**
   * Tries once more if a connection that was kept from before turns out to be closed: that says nothing about the host.
   */
  async function dispatch(request: RegistryRequest, proxy: ForwardProxy | undefined): Promise<Dispatcher.ResponseData> {
    for (let isFirst = true; ; isFirst = false) {
      const route = options.guard.route({ ...request, ...(proxy === undefined ? {} : { proxy }) });
      const begun = options.guard.begin();
      try {
        return await route.dispatcher.request({
          origin: route.origin,
          path: route.path,
          method: request.method,
          headers: { ...headersOf(request, options.userAgent), ...route.headers },
          signal: request.signal,
          ...(request.body === undefined ? {} : { body: request.body }),
        });
      } catch (error) {
        const mayRepeat = isFirst && request.method !== 'POST' && !request.signal.aborted;
        if (!mayRepeat || !begun.wasKept(error)) throw error;
      }
    }
  }

  async function exchange(request: RegistryRequest): Promise<RegistryResponse> {
    const proxy = proxyOf(request.url);
    const { statusCode, headers, body } = await dispatch(request, proxy);
    if (statusCode === 407 && proxy !== undefined && request.url.protocol === 'http:') {
      body.on('error', () => undefined).destroy();
      throw proxyAnswered(statusCode, proxy);
    }
    const flat = flatten(headers);
    const answer = { status: statusCode, headers: flat, url: request.url };
    const refuse = (code: 'malformed' | 'too-large', problem: string): ImageError => {
      body.on('error', () => undefined).destroy();
      return new ImageError(`${request.registry} ${problem}`, { code, temporary: false, endpoint: request.registry });
    };
    if (request.method === 'HEAD' || statusCode < 200 || statusCode > 299) {
      // Read the rest, up to a limit, so that the connection can be used again.
      await body.dump({ limit: 16 * 1024, signal: request.signal });
      return { ...answer, body: new Uint8Array() };
    }
    const encoding = (flat['content-encoding'] ?? '').trim().toLowerCase();
    if (encoding !== '' && encoding !== 'identity')
      throw refuse('malformed', 'sent a compressed answer, which was not requested');
    if (request.read !== undefined) {
      // Ending the loop early destroys the body, and so the connection.
      await request.read(bytesOf(body));
      return { ...answer, body: new Uint8Array() };
    }
    if (Number(flat['content-length'] ?? 0) > request.maxBytes) {
      throw refuse('too-large', `sent more than ${request.maxBytes} bytes`);
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) continue;
      size += chunk.byteLength;
      if (size > request.maxBytes) throw refuse('too-large', `sent more than ${request.maxBytes} bytes`);
      chunks.push(chunk);
    }
    return { ...answer, body: Buffer.concat(chunks, size) };
  }
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
  const merged: Record<string, string> = {};
  for (const [name, value] of [...Object.entries(endpointHeaders), ...Object.entries(headers)]) {
    const lower = name.toLowerCase();
    if (!RESERVED.test(lower)) merged[lower] = value;
  }
  return { ...merged, 'user-agent': userAgent, 'accept-encoding': 'identity' };
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
function describe(error: unknown, request: RegistryRequest, proxy: ForwardProxy | undefined): ImageError {
  if (error instanceof ImageError) return error;
  const { registry } = request;
  const code = codeOf(error);
  const isUnreachable =
    error instanceof ProxyFailure || [NOT_CONNECTED, NOT_TLS, UNVERIFIED].some((codes) => codes.test(code));
  const make = (problem: string, kind: 'unavailable' | 'timeout' | 'malformed'): ImageError =>
    new ImageError(`${registry} ${problem}`, {
      code: kind,
      temporary: kind !== 'malformed',
      endpoint: registry,
      ...(isUnreachable ? { unreachable: request.url.host } : {}),
      isUnanswered: kind !== 'malformed',
    });
  if (error instanceof ProxyFailure) {
    const name = proxy === undefined ? 'its proxy' : `the proxy ${proxy.host} (${proxy.variable})`;
    return make(`could not be reached: ${name} ${error.message}`, 'unavailable');
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT')
    return make('could not be reached: the connection timed out', 'timeout');
  if (code === 'ETIMEOUT') return make('could not be reached: the DNS server did not answer', 'timeout');
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return make(`was not found in the DNS (${code})`, 'unavailable');
  // Not all errors of the HTTP parser have a code.
  if (
    (error instanceof Error && error.name === 'HTTPParserError') ||
    /^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_|UND_ERR_REQ_)/.test(code)
  ) {
    return make(`sent an invalid HTTP response`, 'malformed');
  }
  const problem = tlsProblem(code, request);
  return make(problem ?? `could not be reached (${code || 'connection failed'})`, 'unavailable');
}

/** Returns what the code of OpenSSL or of Node.js means for TLS; undefined if it is not about TLS. */
function tlsProblem(code: string, request: RegistryRequest): string | undefined {
  const { protocol, host } = request.url;
  // In TLS 1.3 a client certificate is refused after the handshake, and undici reports only that the connection was
  // closed.
  if (/^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/.test(code) && protocol === 'https:') {
    return `closed the connection early (${code}); registries that require a client certificate do this too`;
  }
  if (/^ERR_OSSL_/.test(code)) return `could not be reached: its client certificate or key cannot be used (${code})`;
  const [, ...alert] = code.startsWith('ERR_SSL_') ? code.split('ALERT_') : [];
  if (alert.some((each) => /CERT|UNKNOWN_CA|HANDSHAKE_FAILURE/.test(each))) {
    return `could not be reached: ${host} requires a client certificate, or refused the configured one (${code})`;
  }
  const key = keyFor(request);
  if (NO_TLS.test(code) && request.trust?.plain !== true) {
    return `could not be reached: ${host} does not speak TLS (${code}); if it speaks plain http, ${key.plain} allows it`;
  }
  if (!UNVERIFIED.test(code)) return undefined;
  const hint = /ISSUER|SELF_SIGNED|LEAF_SIGNATURE|UNTRUSTED/.test(code) ? `${key.authority}, ` : '';
  return `has a certificate at ${host} that cannot be verified (${code}); ${hint}${key.unverified} skips the verification`;
}

/**
 * Returns, for error messages, the settings that would accept a host's plain http, its certificate or its authority.
 * For a trust from a `hosts.toml`, they are in that file.
 */
function keyFor({
  url,
  trust,
  ledBy,
}: RegistryRequest): Readonly<Record<'plain' | 'unverified' | 'authority', string>> {
  const host = printableAscii(url.host, 100);
  if (trust?.file !== undefined) {
    return {
      plain: `"http://${host}" in ${trust.file}`,
      unverified: `skip_verify = true in ${trust.file}`,
      authority: `ca in ${trust.file} names the authority that signed it`,
    };
  }
  const insecure = `registries.insecure: ["${ledBy === undefined ? host : `${printableAscii(ledBy, 100)}", "${host}`}"]`;
  return {
    plain: insecure,
    unverified: insecure,
    authority: 'registries.caFile adds the authority that signed it',
  };
}
