import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Faults } from '../faults.ts';
import { isObject } from '../json.ts';
import { ApiError, badRequest, unauthorized } from '../objects/status.ts';

/** A logged request and the status of its answer; 0: it got no answer. */
export interface LoggedRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly user: string;
  readonly userAgent: string;
  readonly status: number;
  /** What was sent, parsed. */
  readonly body?: unknown;
  /** Milliseconds since the epoch, when it arrived. */
  readonly time: number;
}

/** A request that has been read and whose sender is known. */
export interface Call {
  readonly method: string;
  readonly url: URL;
  readonly user: string;
  readonly userAgent: string;
  readonly contentType: string;
  readonly text: string;
  readonly response: ServerResponse;
}

/** JSON text and its status; undefined when the call answers by itself (a watch). */
export type Reply = { readonly status: number; readonly json: string } | undefined;

export interface ServerOptions {
  readonly faults: Faults;
  readonly users: ReadonlyMap<string, string>;
  readonly answer: (call: Call) => Promise<Reply>;
}

/** The HTTP server: authentication, faults, the log of requests. It keeps its port when it is stopped and started again. */
export function createHttpServer({ faults, users, answer }: ServerOptions) {
  const log: LoggedRequest[] = [];
  let server: Server | undefined;
  let port = 0;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url: target = '/', headers } = request;
    const userAgent = headers['user-agent'] ?? '';
    const url = new URL(target, 'http://localhost');
    const time = Date.now();
    let user = '';
    let text = '';
    const record = (status: number) => {
      const body = text === '' ? {} : { body: parsed(text) };
      log.push({ method, path: target, user, userAgent, status, ...body, time });
    };
    try {
      text = await readBody(request);
      user = authenticate(users, headers.authorization);
      const fault = await faults.reached({ method, path: target, user });
      if (fault?.delayMs !== undefined) await delay(fault.delayMs, undefined, { ref: false });
      if (fault?.reset || fault?.hang) {
        record(0);
        if (fault.reset) response.destroy();
        return;
      }
      if (fault?.status !== undefined) {
        const error = new ApiError(fault.status, '', `fault: ${fault.status}`, undefined, fault.headers);
        throw fault.body ? Object.assign(error, { body: fault.body }) : error;
      }
      const contentType = (headers['content-type'] ?? '').split(';')[0] ?? '';
      const reply = await answer({ method, url, user, userAgent, contentType, text, response });
      record(fault?.loseAnswer ? 0 : (reply?.status ?? 200));
      if (fault?.loseAnswer) response.destroy();
      if (fault?.loseAnswer || !reply) return;
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.json);
    } catch (error) {
      const refusal = error instanceof ApiError ? error : new ApiError(500, 'InternalError', String(error));
      if (!(error instanceof ApiError)) console.error('the embedded cluster failed:', error);
      record(refusal.code);
      if (response.headersSent || response.destroyed) {
        response.destroy();
        return;
      }
      const headers = { 'content-type': 'application/json', ...refusal.headers };
      response.writeHead(refusal.code, headers).end(JSON.stringify(refusal.body));
    }
  }

  return {
    log,
    port: () => port,
    async start(): Promise<void> {
      const started = createServer({ keepAliveTimeout: 60_000, noDelay: true }, (request, response) => {
        response.on('error', () => {});
        void serve(request, response);
      });
      server = started;
      await new Promise<void>((resolve, reject) => {
        started.once('error', reject);
        started.listen(port, '127.0.0.1', resolve);
      });
      const address: AddressInfo | string | null = started.address();
      if (isObject(address)) port = Number(address.port);
    },
    /** Ends every connection, watches too. */
    async stop(): Promise<void> {
      const stopped = server;
      server = undefined;
      if (!stopped) return;
      const closed = new Promise<void>((resolve) => {
        stopped.close(() => resolve());
      });
      stopped.closeAllConnections();
      await closed;
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function authenticate(users: ReadonlyMap<string, string>, header: string | undefined): string {
  if (header === undefined) return 'system:anonymous';
  const user = users.get(header.replace(/^Bearer /, ''));
  if (user === undefined) throw unauthorized();
  return user;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The body as a JSON object, or 400. */
export function parseBody(text: string): Record<string, unknown> {
  const body = parsed(text);
  if (!isObject(body)) throw badRequest('the object provided is unrecognized (must be of type JSON)');
  return body;
}
