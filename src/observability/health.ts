import { createServer } from 'node:http';
import { listen } from '../kit/network/listen.ts';

/** The content of the health server. */
export type HealthOptions = {
  /** `host:port` or `:port`. */
  readonly address: string;
  readonly metrics: () => Promise<{ contentType: string; text: string }>;
  /** What is not ready yet, in words; empty if everything is ready. */
  readonly notReady: () => readonly string[];
};

/**
 * Serves `/metrics`, `/healthz` and `/readyz` until the signal aborts; returns the port. Throws if it cannot listen.
 */
export async function serveHealth(options: HealthOptions, signal: AbortSignal): Promise<{ port: number }> {
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?')[0];
    const send = (status: number, text: string, contentType = 'text/plain; charset=utf-8') => {
      response.writeHead(status, { 'content-type': contentType }).end(text);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') send(405, 'only GET\n');
    else if (path === '/healthz') send(200, 'ok\n');
    else if (path === '/readyz') {
      const missing = options.notReady();
      send(missing.length === 0 ? 200 : 503, missing.length === 0 ? 'ok\n' : `not ready: ${missing.join(', ')}\n`);
    } else if (path === '/metrics') {
      options.metrics().then(
        ({ contentType, text }) => send(200, text, contentType),
        () => send(500, 'metrics cannot be rendered\n'),
      );
    } else send(404, 'not found: /metrics, /healthz, /readyz\n');
  });
  const port = await listen(server, options.address);
  signal.addEventListener('abort', () => {
    server.close();
    server.closeAllConnections();
  });
  return { port };
}
