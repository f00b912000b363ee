import { once } from 'node:events';
import {
  createServer,
  request as forward,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Authority } from './certificates.ts';
import { freePorts } from './ports.ts';

export interface FrontOptions {
  /** A registry that speaks plain http. */
  readonly registry: { readonly url: string };
  /** With `hub`, the registry's `/v2/x` is at `/v2/hub/x` here, and nothing else is. */
  readonly prefix?: string;
  /** HTTPS with a certificate of this authority, for 127.0.0.1, localhost and these names. */
  readonly authority?: Authority;
  readonly names?: readonly string[];
}

/** A request, in the order of arrival. */
export interface FrontRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Name and password of Basic credentials. */
  readonly login: { readonly username: string; readonly password: string } | undefined;
  /** The status of the answer; 0 until there is one. */
  readonly status: number;
}

/** Another name for a registry: a reverse proxy on a port of its own, which records its requests with all headers. */
export interface Front {
  /** 127.0.0.1:PORT, as in image references. */
  readonly host: string;
  /** With the scheme. */
  readonly url: string;
  requests(): readonly FrontRequest[];
  forgetRequests(): void;
  /** Answers every request with this status and nothing else; undefined: passes requests on again. */
  answerWith(status: number | undefined): void;
  stop(): Promise<void>;
}

type Entry = { -readonly [Field in keyof FrontRequest]: FrontRequest[Field] };

/** Starts a front on a free port. Stop it, or the process does not end. */
export async function startFront(options: FrontOptions): Promise<Front> {
  const [port = 0] = await freePorts(1);
  const entries: Entry[] = [];
  let fixed: number | undefined;

  const listener: RequestListener = (incoming, outgoing) => {
    const { method = '', url: path = '', headers } = incoming;
    const entry: Entry = { method, path, headers, login: loginOf(incoming), status: 0 };
    entries.push(entry);
    outgoing.on('finish', () => {
      entry.status = outgoing.statusCode;
    });
    const target = pathBehind(path, options.prefix);
    if (fixed !== undefined || target === undefined) outgoing.writeHead(fixed ?? 404).end();
    else pass(incoming, outgoing, new URL(target, options.registry.url));
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
    requests: () => entries.map((entry) => ({ ...entry })),
    forgetRequests: () => void entries.splice(0),
    answerWith(status) {
      fixed = status;
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Returns the path behind the front; undefined if there is none. */
function pathBehind(path: string, prefix: string | undefined): string | undefined {
  if (prefix === undefined || /^\/v2\/(\?|$)/.test(path)) return path;
  return path.startsWith(`/v2/${prefix}/`) ? `/v2/${path.slice(`/v2/${prefix}/`.length)}` : undefined;
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

function loginOf({ headers }: IncomingMessage): FrontRequest['login'] {
  const encoded = /^Basic (.+)$/i.exec(headers.authorization ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const [username = '', ...password] = Buffer.from(encoded, 'base64').toString().split(':');
  return { username, password: password.join(':') };
}
