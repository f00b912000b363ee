import { STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import { Agent, type buildConnector, type Dispatcher } from 'undici';
import { codeOf } from '../../kit/errors.ts';
import type { ForwardProxy } from '../../kit/network/forward-proxy.ts';

/** A failure between the controller and a proxy, or a refusal by the proxy. */
export class ProxyFailure extends Error {
  /** The status that the proxy answered, if it did. */
  readonly status: number | undefined;

  /** @param problem without addresses or logins, for example `answers 403 Forbidden` */
  constructor({ host, variable }: ForwardProxy, problem: string, status?: number) {
    super(`the proxy ${host} (${variable}) ${problem}`);
    this.status = status;
  }
}

function proxyAnswered(status: number, proxy: ForwardProxy): ProxyFailure {
  const hint =
    status !== 407
      ? ''
      : proxy.authorization === undefined
        ? `: ${proxy.variable} needs a user and password`
        : `: the user or password in ${proxy.variable} is wrong`;
  return new ProxyFailure(proxy, `answers ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd() + hint, status);
}

type TunnelOptions = {
  readonly proxy: ForwardProxy;
  readonly connectProxy: buildConnector.connector;
  /** Makes a TLS connection through one that the proxy opened. */
  readonly connectThrough: buildConnector.connector;
  readonly pool: Agent.Options;
  /** Milliseconds for the proxy's answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

// Why not undici's ProxyAgent: it does not accept a connector to the proxy with the controller's own DNS lookups, and
// reports a refused CONNECT only as a sentence.

/**
 * Creates the pools for a proxy: `https` connects through it (CONNECT), `http` sends plain http requests to it (RFC 9112, section 3.2.2).
 */
export function createTunnel(options: TunnelOptions): { readonly https: Agent; readonly http: Agent } {
  const { proxy } = options;
  const toProxy = new Agent({
    ...options.pool,
    headersTimeout: options.timeoutMs,
    connect: (target, callback) => {
      // undici takes the TLS server name from the Host header, which names the registry and not the proxy.
      const { servername: _servername, ...rest } = target;
      options.connectProxy(rest, (error, socket) => {
        if (error !== null)
          callback(new ProxyFailure(proxy, `could not be reached (${codeOf(error) || 'connection failed'})`), null);
        else callback(null, socket);
      });
    },
  });

  async function open(authority: string): Promise<Socket> {
    const { statusCode, socket } = await toProxy.connect({
      origin: proxy.origin,
      path: authority,
      headers: { host: authority, ...proxyHeaders(proxy) },
      signal: options.signal,
    });
    if (statusCode >= 200 && statusCode <= 299 && socket instanceof Socket) return socket;
    socket.on('error', () => undefined).destroy();
    throw proxyAnswered(statusCode, proxy);
  }

  const https = new Agent({
    ...options.pool,
    connect: (target, callback) => {
      const host = target.host ?? target.hostname;
      open(target.port === '' ? `${host}:443` : host).then(
        (httpSocket) => options.connectThrough({ ...target, httpSocket }, callback),
        (error: unknown) =>
          callback(
            error instanceof ProxyFailure
              ? error
              : new ProxyFailure(proxy, `did not open a connection (${codeOf(error) || 'connection failed'})`),
            null,
          ),
      );
    },
  });
  return { https, http: toProxy };
}

/** Sends a request for a plain http URL by the pool to the proxy. */
export async function forward(
  pool: Agent,
  proxy: ForwardProxy,
  { origin, host, pathname, search }: URL,
  sent: Omit<Dispatcher.RequestOptions, 'origin' | 'path'> & { readonly headers: Readonly<Record<string, string>> },
): Promise<Dispatcher.ResponseData> {
  const headers = { ...sent.headers, host, ...proxyHeaders(proxy) };
  const answer = await pool.request({ ...sent, origin: proxy.origin, path: origin + pathname + search, headers });
  if (answer.statusCode !== 407) return answer;
  answer.body.on('error', () => undefined).destroy();
  throw proxyAnswered(407, proxy);
}

function proxyHeaders({ authorization }: ForwardProxy): Record<string, string> {
  return authorization === undefined ? {} : { 'proxy-authorization': authorization };
}
