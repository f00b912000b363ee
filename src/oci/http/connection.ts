import { LRUCache } from 'lru-cache';
import type { Dispatcher } from 'undici';
import { codeOf } from '../../kit/errors.ts';
import { printableAscii } from '../../kit/printable.ts';
import { ImageError } from '../errors.ts';
import type { Guard } from './guard.ts';
import type { ForwardProxy, ProxySelector } from './proxy.ts';
import type { RegistryRequest, RegistryResponse, SendRequest } from './transport.ts';
import { ProxyFailure, proxyAnswered } from './tunnel.ts';
import { parseUrl } from './url.ts';

export type ConnectionOptions = {
  readonly guard: Guard;
  readonly userAgent: string;
  readonly proxy?: ProxySelector;
};

/** Of a TLS handshake with something that certainly speaks another protocol; an alert is spoken in TLS. */
const NOT_TLS = /^(EPROTO|ERR_SSL_(?!.*ALERT))/;
/** Of those, what is said where the other side speaks no TLS at all; others are about a version or a cipher. */
const NO_TLS = /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL))$/;
/** What such a thing may do as well, and a registry with TLS that is just being restarted. */
const HUNG_UP = /^(ECONNRESET|UND_ERR_SOCKET)$/;
/** Of trusts and hosts that may speak plain http, which the operator names. */
const MAX_SPOKEN = 10_000;

/** What one request came to: its answer, or what went wrong, and how that is told. */
type Attempt = { readonly response: RegistryResponse } | { readonly cause: unknown; readonly error: ImageError };

/** What no configuration sets: our name, what the connection itself needs, and what is meant for the next hop only. */
const RESERVED =
  /^(host|user-agent|accept-encoding|content-length|connection|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/**
 * The last link: one request over the guarded connections, its body read within bounds.
 * Where the trust allows plain http, that is tried after TLS; what worked is remembered, until it works no more.
 */
export function createSend(options: ConnectionOptions): SendRequest {
  const spoken = new LRUCache<string, 'https' | 'http'>({ max: MAX_SPOKEN });
  const proxyOf = (url: URL): ForwardProxy | undefined => options.proxy?.(url);

  return async (request) => {
    const { url, trust } = request;
    if (trust?.plain !== true || url.protocol !== 'https:') return answerOf(await attempt(request));
    const open: RegistryRequest = { ...request, url: new URL(url.href.replace(/^https:/, 'http:')) };
    const key = `${trust.id} ${url.host}`;
    const known = spoken.get(key);
    if (known === 'http') {
      const plain = await attempt(open);
      // 400 is what servers with TLS say to plain http: it may have been put in front of the registry since.
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

  /** @throws the signal's reason; what fails otherwise is told */
  async function attempt(request: RegistryRequest): Promise<Attempt> {
    try {
      return { response: await exchange(request) };
    } catch (cause) {
      if (request.signal.aborted) throw request.signal.reason;
      return { cause, error: describe(cause, request, proxyOf(request.url)) };
    }
  }

  /** One more try where a connection that was kept from before turns out to be closed: that says nothing of the host. */
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
      // Read on, within reason, so that the connection can be used again.
      await body.dump({ limit: 16 * 1024, signal: request.signal });
      return { ...answer, body: new Uint8Array() };
    }
    const encoding = (flat['content-encoding'] ?? '').trim().toLowerCase();
    if (encoding !== '' && encoding !== 'identity')
      throw refuse('malformed', 'answers compressed, which was not asked for');
    if (Number(flat['content-length'] ?? 0) > request.maxBytes) {
      throw refuse('too-large', `answers with more than ${request.maxBytes} bytes`);
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) continue;
      size += chunk.byteLength;
      if (size > request.maxBytes) throw refuse('too-large', `answers with more than ${request.maxBytes} bytes`);
      chunks.push(chunk);
    }
    return { ...answer, body: Buffer.concat(chunks, size) };
  }
}

function answerOf(attempt: Attempt): RegistryResponse {
  if ('response' in attempt) return attempt.response;
  throw attempt.error;
}

/** Whether what failed over TLS may be a registry without it; the operator allowed to find out. */
function mayBePlain(error: unknown, url: URL, known: 'https' | undefined): boolean {
  const code = codeOf(error);
  // One that spoke TLS is not there while it is restarted: credentials are not sent in the clear for that.
  if (known !== undefined) return NOT_TLS.test(code);
  // Behind a proxy, it is the proxy that meets a closed port, or does not care to open that one.
  if (error instanceof ProxyFailure) return error.status !== undefined && error.status !== 407;
  return NOT_TLS.test(code) || HUNG_UP.test(code) || (code === 'ECONNREFUSED' && url.port === '');
}

/**
 * Whether an answer over plain http may come from something else than a registry that speaks it: 400 is what servers with
 * TLS say to that, a proxy answers for a host that is not there, and port 80 may only lead to https.
 */
function isDoubtful({ status, headers, url }: RegistryResponse): boolean {
  const target = headers.location === undefined ? undefined : parseUrl(headers.location, url);
  return status === 400 || status >= 500 || (target?.protocol === 'https:' && target.hostname === url.hostname);
}

/** The configuration's headers, under our own. */
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

/** What went wrong below HTTP. Its own message may hold resolved addresses, so only its code is passed on. */
function describe(error: unknown, request: RegistryRequest, proxy: ForwardProxy | undefined): ImageError {
  if (error instanceof ImageError) return error;
  const { registry } = request;
  const code = codeOf(error);
  const make = (problem: string, kind: 'unavailable' | 'timeout' | 'malformed'): ImageError =>
    new ImageError(`${registry} ${problem}`, { code: kind, temporary: kind !== 'malformed', endpoint: registry });
  if (error instanceof ProxyFailure) {
    const name = proxy === undefined ? 'its proxy' : `the proxy ${proxy.host} (${proxy.variable})`;
    return make(`could not be asked: ${name} ${error.message}`, 'unavailable');
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT')
    return make('could not be connected to in time', 'timeout');
  if (code === 'ETIMEOUT') return make('has no answer from the DNS', 'timeout');
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return make(`has no address in the DNS (${code})`, 'unavailable');
  // The parser's errors do not all have a code.
  if (
    (error instanceof Error && error.name === 'HTTPParserError') ||
    /^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_|UND_ERR_REQ_)/.test(code)
  ) {
    return make(`does not speak proper HTTP`, 'malformed');
  }
  const problem = tlsProblem(code, request);
  return make(problem ?? `could not be asked (${code || 'connection failed'})`, 'unavailable');
}

/** What the code of OpenSSL or of Node.js says about TLS; undefined where it is about something else. */
function tlsProblem(code: string, request: RegistryRequest): string | undefined {
  const { protocol, host } = request.url;
  // In TLS 1.3 a client certificate is refused after the handshake, and undici keeps only that the connection was closed.
  if (/^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/.test(code) && protocol === 'https:') {
    return `hung up early (${code}); registries that want a client certificate do so too`;
  }
  if (/^ERR_OSSL_/.test(code)) return `could not be asked: its client certificate or key cannot be used (${code})`;
  if (/^ERR_SSL_.*ALERT_.*(CERT|UNKNOWN_CA|HANDSHAKE_FAILURE)/.test(code)) {
    return `could not be asked: ${host} wants a client certificate, or refuses ours (${code})`;
  }
  const key = keyFor(request);
  if (NO_TLS.test(code) && request.trust?.plain !== true) {
    return `could not be asked: ${host} speaks no TLS (${code}); where it speaks plain http, ${key.plain} allows that`;
  }
  if (!/CERT|ISSUER|SIGNATURE|ALTNAME/.test(code)) return undefined;
  const hint = /ISSUER|SELF_SIGNED|LEAF_SIGNATURE|UNTRUSTED/.test(code) ? `${key.authority}, ` : '';
  return `has a certificate, at ${host}, that cannot be verified (${code}); ${hint}${key.unverified} skips that`;
}

/** What opens a host: for one with a trust out of a `hosts.toml`, that file is what counts. */
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
