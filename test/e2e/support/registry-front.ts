import { once } from 'node:events';
import {
  createServer,
  request as forward,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Authority } from '../../../hack/cluster/certificates.ts';
import { freePorts } from '../../../hack/cluster/ports.ts';

export interface FrontOptions {
  /** A registry that speaks plain http. */
  readonly registry: { readonly url: string };
  /** HTTPS with a certificate of this authority, for 127.0.0.1, localhost and these names. */
  readonly authority?: Authority;
  readonly names?: readonly string[];
}

/** A request, in the order of arrival. */
export interface FrontRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
}

/** Another name for a registry: a reverse proxy on a port of its own, which records its requests. */
export interface Front {
  /** 127.0.0.1:PORT, as in image references. */
  readonly host: string;
  /** With the scheme. */
  readonly url: string;
  requests(): readonly FrontRequest[];
  stop(): Promise<void>;
}

/** Starts a front on a free port. Stop it, or the process does not end. */
export async function startFront(options: FrontOptions): Promise<Front> {
  const [port = 0] = await freePorts(1);
  const requests: FrontRequest[] = [];

  const listener: RequestListener = (incoming, outgoing) => {
    const { method = '', url: path = '' } = incoming;
    requests.push({ method, path });
    pass(incoming, outgoing, new URL(path, options.registry.url));
  };
  const pair = options.authority?.issue('front', ['127.0.0.1', 'localhost', ...(options.names ?? [])]);
  const server =
    pair === undefined
      ? createServer(listener)
      : createSecureServer({ cert: pair.certificate, key: pair.key }, listener);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${port}`,
    url: `${pair === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    requests: () => [...requests],
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function pass(incoming: IncomingMessage, outgoing: ServerResponse, target: URL): void {
  const upstream = forward(target, { method: incoming.method, headers: { ...incoming.headers, host: target.host } });
  const fail = () => void (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end());
  upstream.on('error', fail);
  upstream.on('response', (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.on('error', fail);
    answer.pipe(outgoing);
  });
  outgoing.on('close', () => upstream.destroy());
  incoming.pipe(upstream);
}
