import { request as undiciRequest } from 'undici';
import { ImageError } from './errors.ts';
import type { Guard } from './guard.ts';
import type { Request, Response, Send } from './transport.ts';

/** Failures of a TLS handshake with something that speaks plain http. */
const NOT_TLS = /^(EPROTO|ECONNRESET|UND_ERR_SOCKET|ERR_SSL_)/;

/**
 * The last link: one request over the guarded connections, its body read within bounds.
 * A host that is configured as insecure is tried with TLS, unverified, and then without; what worked is remembered.
 */
export function createSend(options: { readonly guard: Guard; readonly userAgent: string }): Send {
  const plain = new Map<string, boolean>();

  return async (request) => {
    const { host } = request.url;
    const downgrade = (): Request => ({ ...request, url: new URL(request.url.href.replace(/^https:/, 'http:')) });
    const isOpen = request.policy === 'configured' && request.url.protocol === 'https:';
    try {
      if (!isOpen || plain.get(host) === false) return await exchange(request);
      if (plain.get(host) === true) return await exchange(downgrade());
      let response: Response;
      let isPlain = false;
      try {
        response = await exchange(request);
      } catch (error) {
        const code = codeOf(error);
        isPlain = NOT_TLS.test(code) || (code === 'ECONNREFUSED' && request.url.port === '');
        if (!isPlain || request.signal.aborted) throw error;
        response = await exchange(downgrade());
      }
      plain.set(host, isPlain);
      return response;
    } catch (error) {
      throw request.signal.aborted ? request.signal.reason : describe(error, request);
    }
  };

  async function exchange(request: Request): Promise<Response> {
    const { statusCode, headers, body } = await undiciRequest(request.url, {
      dispatcher: options.guard.dispatcher(request.policy),
      method: request.method,
      headers: { ...request.headers, 'user-agent': options.userAgent, 'accept-encoding': 'identity' },
      signal: request.signal,
    });
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
    const encoding = (flat['content-encoding'] ?? 'identity').toLowerCase();
    if (encoding !== 'identity') throw refuse('malformed', 'answers compressed, which was not asked for');
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

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const flat: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(headers)) {
    const text = Array.isArray(value) ? (name === 'www-authenticate' ? value.join(', ') : value[0]) : value;
    if (text !== undefined) flat[name.toLowerCase()] = text;
  }
  return flat;
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

/** What went wrong below HTTP. Its own message may hold resolved addresses, so only its code is passed on. */
function describe(error: unknown, { registry }: Request): ImageError {
  if (error instanceof ImageError) return error;
  const code = codeOf(error);
  const make = (problem: string, kind: 'unavailable' | 'timeout' | 'malformed'): ImageError =>
    new ImageError(`${registry} ${problem}`, { code: kind, temporary: kind !== 'malformed', endpoint: registry });
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT')
    return make('could not be connected to in time', 'timeout');
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return make(`has no address in the DNS (${code})`, 'unavailable');
  // The parser's errors do not all have a code.
  if (
    (error instanceof Error && error.name === 'HTTPParserError') ||
    /^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_|UND_ERR_REQ_)/.test(code)
  ) {
    return make(`does not speak proper HTTP`, 'malformed');
  }
  if (/CERT|ISSUER|SIGNATURE|ALTNAME/.test(code)) {
    return make(`has a certificate that cannot be verified (${code}); registries.insecure skips that`, 'unavailable');
  }
  return make(`could not be asked (${code || 'connection failed'})`, 'unavailable');
}
