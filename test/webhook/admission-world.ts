import { once } from 'node:events';
import { Agent, type RequestOptions, request } from 'node:https';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { type Authority, createAuthority } from '../../hack/cluster/certificates.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import type { Reviewed } from '../../src/webhook/body.ts';
import { type AdmissionLimits, serveAdmission } from '../../src/webhook/server.ts';

/** PEM. */
export type Pair = { readonly cert: string; readonly key: string };

export type Answered = {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
};

/** An admission server with its own certificate authority, and ways to use it. */
export type AdmissionWorld = {
  readonly port: number;
  readonly authority: Authority;
  /** The errors of reviews and certificates. */
  readonly errors: unknown[];
  /** Outcomes, in the order in which requests ended. */
  readonly outcomes: Reviewed['outcome'][];
  /** The answer to the next reviews. */
  review: (body: JsonObject) => Reviewed;
  /** Replaces the certificate; undefined: by a new one. */
  exchange(certificate?: Pair): Pair;
  /** Sends a request; a body that is not a text is sent as JSON. */
  ask(body: unknown, options?: RequestOptions): Promise<Answered>;
  /** Opens a connection for raw writes. */
  open(options?: ConnectionOptions): Promise<TLSSocket>;
  /** Starts the shutdown. */
  leave(): void;
  /** Resolves when the server has ended. */
  readonly closed: Promise<void>;
  /** Aborts the server's signal. */
  end(): void;
  stop(): Promise<void>;
};

/** The path of reviews. */
export const PATH = '/mutate/a-secret';

export const REVIEW = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { uid: 'u1' } };
const UNCHANGED: Reviewed = { outcome: 'unchanged', text: JSON.stringify({ response: { uid: 'u1', allowed: true } }) };

/** Starts the server on a free port of the loopback address. */
export async function startAdmissionWorld(
  options: { readonly limits?: Partial<AdmissionLimits>; readonly certified?: boolean } = {},
): Promise<AdmissionWorld> {
  const authority = createAuthority('authority');
  const controller = new AbortController();
  const listeners: (() => void)[] = [];
  const issue = (): Pair => {
    const { certificate: cert, key } = authority.issue('webhook', ['127.0.0.1']);
    return { cert, key };
  };
  let current = options.certified === false ? undefined : issue();
  const errors: unknown[] = [];
  const outcomes: Reviewed['outcome'][] = [];
  const agent = new Agent({ ca: authority.certificate, keepAlive: true });
  const sockets = new Set<TLSSocket>();
  const leaving = new AbortController();
  const { port, closed } = await serveAdmission(
    {
      address: '127.0.0.1:0',
      certificate: { current: () => current, onChange: (listener) => void listeners.push(listener) },
      isServed: (path) => path === PATH,
      review: (body) => world.review(body),
      onReviewed: (outcome) => outcomes.push(outcome),
      onError: (error) => errors.push(error),
      leaving: leaving.signal,
      ...(options.limits === undefined ? {} : { limits: options.limits }),
    },
    controller.signal,
  );
  const world: AdmissionWorld = {
    port,
    authority,
    errors,
    outcomes,
    review: () => UNCHANGED,
    exchange(certificate = issue()) {
      current = certificate;
      for (const listener of listeners) listener();
      return certificate;
    },
    async ask(body, overrides = {}) {
      const headers = { 'content-type': 'application/json', ...overrides.headers };
      const target = { host: '127.0.0.1', port, path: `${PATH}?timeout=2s`, method: 'POST', agent, ...overrides };
      const sent = request({ ...target, headers });
      sent.end(typeof body === 'string' ? body : JSON.stringify(body));
      const [response] = await once(sent, 'response');
      let text = '';
      for await (const chunk of response) text += chunk;
      return {
        status: response.statusCode,
        headers: response.headers,
        body: text === '' ? undefined : JSON.parse(text),
      };
    },
    async open(overrides = {}) {
      const socket = connect({ host: '127.0.0.1', port, ca: authority.certificate, ...overrides });
      sockets.add(socket);
      socket.on('error', () => undefined);
      await once(socket, 'secureConnect');
      return socket;
    },
    leave: () => leaving.abort(),
    closed,
    end: () => controller.abort(),
    async stop() {
      controller.abort();
      agent.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
  return world;
}

/**
 * Reads everything until the connection is closed. A reset counts as closed: the server hangs up on a client that still
 * writes, and whether that is a reset depends on the version of Node.js.
 */
export async function textOf(socket: TLSSocket): Promise<string> {
  let text = '';
  socket.on('error', () => undefined);
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}
