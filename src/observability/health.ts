import { createServer, type RequestListener } from 'node:http';
import type { Duplex } from 'node:stream';
import { createAllowance } from '../kit/fairness/allowance.ts';
import { createConnections } from '../kit/network/connections.ts';
import { listen } from '../kit/network/listen.ts';

/** The content of the health server. */
export type HealthOptions = {
  /** `host:port` or `:port`. */
  readonly address: string;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** What is not ready yet, in words; empty if everything is ready. */
  readonly notReady: () => readonly string[];
  readonly limits?: Partial<HealthLimits>;
};

/** In bytes and milliseconds. */
type HealthLimits = {
  /** The number of open connections. Beyond it, those that have been open for long without need are closed. */
  readonly connections: number;
  readonly head: number;
  /** The time until a request has arrived as a whole. */
  readonly request: number;
  /** The time until a client has read the answer. */
  readonly answer: number;
};

/** Everybody in the pod network reaches the port. The kubelet and a few scrapers need a handful of connections, and short requests. */
const LIMITS: HealthLimits = { connections: 64, head: 8 * 1024, request: 5_000, answer: 10_000 };
/** To render the metrics, every pod is counted. Requests beyond this get the text of the one before. */
const RENDERED = { burst: 10, perSecond: 2 };

/** Serves `/metrics`, `/healthz` and `/readyz` until the signal aborts; returns the port. Throws if it cannot listen. */
export async function serveHealth(options: HealthOptions, signal: AbortSignal): Promise<{ port: number }> {
  const limits = { ...LIMITS, ...options.limits };
  const metrics = shareRendered(options.metrics);
  const server = createServer(
    {
      maxHeaderSize: limits.head,
      headersTimeout: limits.request,
      requestTimeout: limits.request,
      connectionsCheckingInterval: Math.min(1_000, limits.request),
    },
    oneAtATime((request, response) => {
      const slow = setTimeout(() => request.socket.destroy(), limits.answer).unref();
      response.once('close', () => clearTimeout(slow));
      const path = (request.url ?? '/').split('?')[0];
      const send = (status: number, body: string | Buffer, contentType = 'text/plain; charset=utf-8') => {
        // Nobody reads a body, so nothing may follow it.
        const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
        const last = length === undefined && encoding === undefined ? {} : { connection: 'close' };
        const head = { 'content-type': contentType, 'content-length': Buffer.byteLength(body), ...last };
        response.writeHead(status, head).end(body);
      };
      if (request.method !== 'GET' && request.method !== 'HEAD') send(405, 'only GET\n');
      else if (path === '/healthz') send(200, 'ok\n');
      else if (path === '/readyz') {
        const missing = options.notReady();
        send(missing.length === 0 ? 200 : 503, missing.length === 0 ? 'ok\n' : `not ready: ${missing.join(', ')}\n`);
      } else if (path === '/metrics') {
        metrics().then(
          ({ contentType, body }) => send(200, body, contentType),
          () => send(500, 'metrics cannot be rendered\n'),
        );
      } else send(404, 'not found: /metrics, /healthz, /readyz\n');
    }),
  );
  const { connections: all } = limits;
  // No client proves anything here, so each connection may have to make room for another.
  server.on('connection', createConnections({ all, unproven: all }, () => performance.now()).add);
  const port = await listen(server, options.address);
  signal.addEventListener('abort', () => {
    server.close();
    server.closeAllConnections();
  });
  return { port };
}

/** Clients that ask at the same time get the same bytes, which are in memory once. */
function shareRendered(render: HealthOptions['metrics']) {
  type Shared = { readonly contentType: string; readonly body: Buffer };
  const mayRender = createAllowance({ ...RENDERED, now: () => performance.now() });
  let last: Shared | undefined;
  let rendering: Promise<Shared> | undefined;

  async function renderNow(): Promise<Shared> {
    const { contentType, text } = await render();
    last = { contentType, body: Buffer.from(text) };
    return last;
  }

  return async (): Promise<Shared> => {
    if (rendering !== undefined) return rendering;
    if (!mayRender('') && last !== undefined) return last;
    rendering = renderNow().finally(() => {
      rendering = undefined;
    });
    return rendering;
  };
}

/**
 * Makes a listener that ends a connection on which a request arrives before the one before it is answered. No scraper does that,
 * and a few kilobytes of such requests make thousands of answers that wait in memory.
 */
function oneAtATime(serve: RequestListener): RequestListener {
  const busy = new WeakSet<Duplex>();
  return (request, response) => {
    const { socket } = request;
    if (busy.has(socket)) {
      // Not at once: the parser still reads the bytes that have arrived, and Node.js fails if the connection ends meanwhile.
      setImmediate(() => socket.destroy());
      return;
    }
    busy.add(socket);
    response.once('close', () => busy.delete(socket));
    serve(request, response);
  };
}
