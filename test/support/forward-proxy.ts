/** A proxy on 127.0.0.1 as companies have them: CONNECT for https, requests in absolute form for http. */
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { listen } from '../../src/kit/network/listen.ts';

export type ForwardProxyOptions = {
  /** `name:password`; others are answered 407. */
  readonly login?: string;
  /** PEM: the proxy itself is asked over TLS. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** Where a host[:port] leads, as `127.0.0.1:8443`; absent, or undefined for a host: there. */
  readonly dial?: (host: string) => string | undefined;
  /** A status that answers every request instead. */
  readonly refusal?: number;
};

export type ForwardProxyServer = {
  /** `http://127.0.0.1:PORT`, or https. */
  readonly url: string;
  /** 127.0.0.1:PORT */
  readonly host: string;
  /** What was asked for, let through or not: `CONNECT registry.example.com:443`, `GET http://registry.example.com/v2/`. */
  readonly targets: string[];
  /** The headers that came with each. */
  readonly headers: IncomingMessage['headers'][];
  stop(): Promise<void>;
};

/** Starts a proxy. Stop it, or the process does not end. */
export async function startForwardProxy(options: ForwardProxyOptions = {}): Promise<ForwardProxyServer> {
  const { login, tls } = options;
  const targets: string[] = [];
  const headers: IncomingMessage['headers'][] = [];
  const sockets = new Set<Socket>();
  const server = tls === undefined ? createServer() : createTlsServer({ cert: tls.certificate, key: tls.key });

  /** The status that the request is refused with, or undefined. */
  function meet(request: IncomingMessage): number | undefined {
    targets.push(`${request.method} ${request.url}`);
    headers.push(request.headers);
    const expected = login === undefined ? undefined : `Basic ${Buffer.from(login).toString('base64')}`;
    return request.headers['proxy-authorization'] === expected ? options.refusal : 407;
  }

  function open(host: string): Socket {
    const [, name = '', port] = /^(.*):(\d+)$/.exec(options.dial?.(host) ?? host) ?? [];
    return keep(connect(Number(port), name.replace(/^\[|\]$/g, '')));
  }

  function keep(socket: Socket): Socket {
    sockets.add(socket);
    return socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  }

  server.on('connection', keep);
  server.on('connect', (request, client) => {
    client.on('error', () => client.destroy());
    const refused = meet(request);
    if (refused !== undefined) {
      client.end(`HTTP/1.1 ${refused} Refused\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const target = open(request.url ?? '');
    const fail = () => client.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n');
    target.once('error', fail).once('connect', () => {
      target.off('error', fail).on('close', () => client.destroy());
      client.on('close', () => target.destroy());
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      target.pipe(client).pipe(target);
    });
  });
  server.on('request', (request, response) => {
    const refused = URL.canParse(request.url ?? '') ? meet(request) : 400;
    if (refused !== undefined) {
      response.writeHead(refused, { 'content-length': '0' }).end();
      return;
    }
    const url = new URL(request.url ?? '');
    const { 'proxy-authorization': _login, ...rest } = request.headers;
    const onward = httpRequest({
      createConnection: () => open(`${url.hostname}:${url.port || '80'}`),
      method: request.method,
      path: url.pathname + url.search,
      headers: { ...rest, host: url.host },
    });
    onward.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  const host = `127.0.0.1:${await listen(server, '127.0.0.1:0')}`;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${host}`,
    host,
    targets,
    headers,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
