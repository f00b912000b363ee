import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import { type Duplex, finished } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { until } from '../kit/abort.ts';
import { type JsonObject, objectAt, stringAt } from '../kit/json.ts';
import { type ConnectionLimits, createConnections } from '../kit/network/connections.ts';
import { listen } from '../kit/network/listen.ts';
import { type BodyLimits, createBodyReader, RequestError, type ReviewBodyReader, type Reviewed } from './body.ts';
import type { ServingCertificate } from './certificates/source.ts';

export type AdmissionOptions = {
  /** `host:port` or `:port`. */
  readonly address: string;
  readonly certificate: {
    current(): Pick<ServingCertificate, 'cert' | 'key'> | undefined;
    /** Calls the listener whenever there is another certificate. */
    onChange(listener: () => void): void;
  };
  /** Whether the server answers reviews at a path. */
  readonly isServed: (path: string) => boolean;
  /** Answers a review. May throw a RequestError for a body that is not an AdmissionReview. */
  readonly review: (body: JsonObject) => Reviewed;
  /** Called for each request that ended, with the seconds from its head to its answer. */
  readonly onReviewed: (outcome: Reviewed['outcome'], seconds: number) => void;
  /** Called with errors that should never happen: of a review (its object was allowed unchanged), or of an unusable certificate. */
  readonly onError: (error: unknown) => void;
  /** Once this signal aborts, each answer ends its connection, so that the next request goes to another replica. */
  readonly leaving?: AbortSignal;
  readonly limits?: Partial<AdmissionLimits>;
};

/** In bytes and milliseconds. Those of bodies stand first; `time` is also the limit for a handshake, and for the head of a request. */
export type AdmissionLimits = BodyLimits & {
  readonly connections: ConnectionLimits;
  /** How long a connection without a request stays open. */
  readonly idle: number;
  /** The time for requests that are under way when the signal aborts. */
  readonly farewell: number;
};

const LIMITS: AdmissionLimits = {
  // The object and its previous version, up to 3 MiB each (the API server's limit), and the fields around them.
  size: 7 * 1024 * 1024,
  // Reading, parsing and reviewing a body takes several times its size.
  total: 16 * 1024 * 1024,
  large: 256 * 1024,
  // An object of the largest size that etcd stores has about 100,000 values. Each may take 200 bytes of memory.
  tokens: 200_000,
  // The managed fields of a pod have 17 levels.
  depth: 64,
  time: 10_000,
  connections: { all: 512, unproven: 128 },
  // Longer than the 90 s of Go's client, so that the client never writes to a connection that the server is closing.
  idle: 120_000,
  farewell: 3_000,
};
/** How much of a refused request's body is read and dropped, so that the client sees the answer. */
const REST = { bytes: 64 * 1024, ms: 1_000 };
const MEDIA_TYPE = /^application\/json\s*(?:;|$)/i;

/** A listening server. */
export type AdmissionServer = {
  readonly port: number;
  /** Resolves when the server has stopped listening and the last connection is closed. */
  readonly closed: Promise<void>;
};

/**
 * Serves reviews over HTTPS until the signal aborts. Throws if it cannot listen. It listens at once, so that a port in use is
 * reported at the start. Until there is a certificate, handshakes fail with a TLS alert, which the API server treats like a
 * refused connection. A new certificate is used for new connections; open ones stay.
 */
export async function serveAdmission(options: AdmissionOptions, signal: AbortSignal): Promise<AdmissionServer> {
  const limits = { ...LIMITS, ...options.limits };
  const leaves = () => signal.aborted || options.leaving?.aborted === true;
  const readBody = createBodyReader(limits);
  const connections = createConnections(limits.connections, () => performance.now());
  /** Sockets with a request under way, which is counted when it is answered. */
  const answering = new Set<Duplex>();
  const server = createServer({
    minVersion: 'TLSv1.2',
    handshakeTimeout: limits.time,
    headersTimeout: limits.time,
    // The body reader has its own time limit, and answers when it is exceeded.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, limits.time),
    keepAliveTimeout: limits.idle,
  });
  server.timeout = limits.idle;
  server.on('connection', connections.add);
  const prove = ({ remoteAddress = '', remotePort = 0 }: Socket) => connections.prove(remoteAddress, remotePort);
  // Made once: a copy of the options for each request would cost as much as a decision.
  const how: AnsweringReview = { ...options, readBody, leaves, prove, time: limits.time };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const started = performance.now();
    answering.add(request.socket);
    const outcome = await answer(request, response, how);
    answering.delete(request.socket);
    options.onReviewed(outcome, (performance.now() - started) / 1000);
  };
  server.on('request', serve);
  // With `Expect: 100-continue` the client sends its body only when asked for it.
  server.on('checkContinue', serve);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (refuseBrokenHead(error, socket) && !answering.has(socket)) options.onReviewed('error', 0);
  });
  serveCertificate(server, options);
  const port = await listen(server, options.address);
  return { port, closed: endWith(signal, server, limits.farewell) };
}

type AnsweringReview = AdmissionOptions & {
  readonly readBody: ReviewBodyReader;
  readonly leaves: () => boolean;
  /** Marks a connection as proven: the client knows the path. */
  readonly prove: (socket: Socket) => void;
  readonly time: number;
};

async function answer(request: IncomingMessage, response: ServerResponse, options: AnsweringReview) {
  const { readBody, review, onError, leaves, prove, isServed, time } = options;
  let isProven = false;
  const send = (status: number, text: string, allow?: string) => {
    const head: OutgoingHttpHeaders = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    // The rest of an unread body must not be parsed as a request, and new requests must not delay a shutdown.
    if (!request.complete || leaves()) head.connection = 'close';
    if (allow !== undefined) head.allow = allow;
    response.writeHead(status, head);
    if (request.complete) {
      response.end(text);
      return;
    }
    response.write(text);
    endAfterBody(request, response, isProven ? { ms: time, bytes: Number.POSITIVE_INFINITY } : REST);
  };
  let body: JsonObject = {};
  try {
    checkHead(request, isServed);
    isProven = true;
    prove(request.socket);
    if (request.headers.expect !== undefined) response.writeContinue();
    const { outcome, text } = await readBody(request, (read) => {
      body = read;
      return review(read);
    });
    send(200, text);
    return outcome;
  } catch (error) {
    if (error instanceof RequestError) {
      send(error.status, JSON.stringify({ error: error.message }), error.status === 405 ? 'POST' : undefined);
      return 'error';
    }
    onError(error);
    const passed = passReview(body);
    if (passed === undefined) send(500, JSON.stringify({ error: 'the review failed' }));
    else send(200, JSON.stringify(passed));
    return 'error';
  }
}

/** Ends an answer only when the client has sent the refused body, or a part of it: a client that is still writing does not read. */
function endAfterBody(request: IncomingMessage, response: ServerResponse, rest: { bytes: number; ms: number }): void {
  let left = rest.bytes;
  const timer = setTimeout(() => request.destroy(), rest.ms);
  finished(request, { writable: false }, () => {
    clearTimeout(timer);
    response.end();
  });
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
}

/** @throws RequestError unless the request is a POST of JSON to the right path */
function checkHead({ url = '', method, headers }: IncomingMessage, isServed: (path: string) => boolean): void {
  // The API server adds `?timeout=2s`.
  if (!isServed(url.split('?')[0] ?? '')) throw new RequestError(404, 'not found');
  if (method !== 'POST') throw new RequestError(405, 'only POST');
  if (!MEDIA_TYPE.test(headers['content-type'] ?? '')) {
    throw new RequestError(415, 'content-type: expected application/json');
  }
}

/** Returns the answer that allows the object unchanged; undefined if the body has no uid to answer to. */
function passReview(body: JsonObject): JsonObject | undefined {
  const uid = stringAt(objectAt(body, 'request'), 'uid');
  const apiVersion = stringAt(body, 'apiVersion');
  return uid === undefined ? undefined : { apiVersion, kind: 'AdmissionReview', response: { uid, allowed: true } };
}

/** Answers a request that is not HTTP or did not arrive in time. Returns whether it answered; earlier failures (TLS) cannot be answered. */
function refuseBrokenHead({ code = '' }: NodeJS.ErrnoException, socket: Duplex): boolean {
  const isTimeout = code === 'ERR_HTTP_REQUEST_TIMEOUT';
  if (!socket.writable || !(isTimeout || code.startsWith('HPE_'))) {
    socket.destroy();
    return false;
  }
  // Clients open connections in advance. One without a byte of a request is idle, which is not an error.
  if (isTimeout && socket instanceof TLSSocket && socket.bytesRead === 0) return false;
  const [status, message] = isTimeout
    ? ['408 Request Timeout', 'the request was not complete in time']
    : code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'the headers are too large']
      : ['400 Bad Request', 'not a valid HTTP request'];
  const text = JSON.stringify({ error: message });
  const head = ['content-type: application/json', `content-length: ${text.length}`, 'connection: close'];
  socket.end(`HTTP/1.1 ${status}\r\n${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
  return true;
}

/** Gives the server each new certificate. If one cannot be used, the one before stays. */
function serveCertificate(server: Server, { certificate, onError }: AdmissionOptions): void {
  const exchange = () => {
    const current = certificate.current();
    if (current === undefined) return;
    try {
      // This call replaces all TLS options, so the version must be repeated.
      server.setSecureContext({ cert: current.cert, key: current.key, minVersion: 'TLSv1.2' });
    } catch (error) {
      onError(error);
    }
  };
  certificate.onChange(exchange);
  exchange();
}

/** When the signal aborts: accepts no new connections, closes idle ones, and gives requests under way some time. */
async function endWith(signal: AbortSignal, server: Server, farewell: number): Promise<void> {
  await until(signal);
  const timer = setTimeout(() => server.closeAllConnections(), farewell);
  await new Promise((resolve) => server.close(resolve));
  clearTimeout(timer);
}
