import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type Duplex, finished } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { type JsonObject, objectAt, stringAt } from '../kit/json.ts';
import { listen } from '../kit/listen.ts';
import { type BodyReader, createBodyReader } from './body.ts';
import type { ServingCertificate } from './certificates/source.ts';
import { type ConnectionLimits, createConnections } from './connections.ts';
import { RequestError, type Reviewed } from './reviewed.ts';

export type AdmissionOptions = {
  /** `host:port` or `:port`. */
  readonly address: string;
  readonly certificate: {
    current(): Pick<ServingCertificate, 'cert' | 'key'> | undefined;
    /** Calls the listener whenever there is another one. */
    onChange(listener: () => void): void;
  };
  /** Whether reviews are answered at a path. */
  readonly isServed: (path: string) => boolean;
  /** May throw a RequestError for what is no AdmissionReview. */
  readonly review: (body: JsonObject) => Reviewed;
  /** Each request that ended; seconds from its head until its answer was handed over. */
  readonly onReviewed: (outcome: Reviewed['outcome'], seconds: number) => void;
  /** What should never happen: a review that threw (its object was let pass as it is), a certificate that cannot be used. */
  readonly onError: (error: unknown) => void;
  /** From when it aborts on, each answer ends its connection: the next request then goes to where the callers look next. */
  readonly leaving?: AbortSignal;
  readonly limits?: Partial<AdmissionLimits>;
};

/** In bytes and milliseconds. */
export type AdmissionLimits = {
  readonly bodySize: number;
  readonly bodySizes: number;
  /** From this size on bodies are parsed one at a time. */
  readonly largeBody: number;
  /** Values in a body, and how deep they are nested. */
  readonly bodyTokens: number;
  readonly bodyDepth: number;
  readonly connections: ConnectionLimits;
  /** For a handshake, for the head of a request, for its body. */
  readonly time: number;
  /** A connection without a request is kept so long. */
  readonly idle: number;
  /** For requests under way when the signal aborts. */
  readonly farewell: number;
};

const LIMITS: AdmissionLimits = {
  // An object and the one before it, up to 3 MiB each as the API server takes them, and what is said about them.
  bodySize: 7 * 1024 * 1024,
  // Reading, parsing and reviewing a body takes several times its size.
  bodySizes: 16 * 1024 * 1024,
  largeBody: 256 * 1024,
  // An object of the largest size that etcd takes has some 100,000. Each may take 200 bytes of memory.
  bodyTokens: 200_000,
  // The managed fields of a pod have 17 levels.
  bodyDepth: 64,
  connections: { all: 512, unproven: 128 },
  time: 10_000,
  // Longer than the 90 s of Go's client, which then never writes to a connection that we are closing.
  idle: 120_000,
  farewell: 3_000,
};
/** What is read, and thrown away, of a body that is refused by its head, so that the client sees the answer. */
const REST = { bytes: 64 * 1024, ms: 1_000 };
const MEDIA_TYPE = /^application\/json\s*(?:;|$)/i;

/** A server that listens. */
export type AdmissionServer = {
  readonly port: number;
  /** Resolves when it has stopped listening and the last connection is closed. */
  readonly closed: Promise<void>;
};

/**
 * Serves reviews over HTTPS until the signal aborts. Throws when it cannot listen. It listens at once, so that a port that is taken is known at the start: until there is a certificate, handshakes fail by an alert,
 * which the API server takes as it takes a refused connection. Another certificate serves new connections; those that are
 * open stay.
 */
export async function serveAdmission(options: AdmissionOptions, signal: AbortSignal): Promise<AdmissionServer> {
  const limits = { ...LIMITS, ...options.limits };
  const leaves = () => signal.aborted || options.leaving?.aborted === true;
  const readBody = createBodyReader({
    size: limits.bodySize,
    total: limits.bodySizes,
    large: limits.largeBody,
    tokens: limits.bodyTokens,
    depth: limits.bodyDepth,
    time: limits.time,
  });
  const connections = createConnections(limits.connections, () => performance.now());
  /** Whose requests are counted where they are answered. */
  const answering = new WeakSet<Duplex>();
  const server = createServer({
    minVersion: 'TLSv1.2',
    handshakeTimeout: limits.time,
    headersTimeout: limits.time,
    // Bodies have a limit of their own, which is answered.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, limits.time),
    keepAliveTimeout: limits.idle,
  });
  server.timeout = limits.idle;
  server.on('connection', connections.add);
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const started = performance.now();
    const { remoteAddress = '', remotePort = 0 } = request.socket;
    answering.add(request.socket);
    const prove = () => connections.prove(remoteAddress, remotePort);
    const outcome = await answer(request, response, { ...options, readBody, leaves, prove, time: limits.time });
    answering.delete(request.socket);
    options.onReviewed(outcome, (performance.now() - started) / 1000);
  };
  server.on('request', serve);
  // Here the client waits with its body until it is asked for it.
  server.on('checkContinue', serve);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (refuseBrokenHead(error, socket) && !answering.has(socket)) options.onReviewed('error', 0);
  });
  serveCertificate(server, options);
  const port = await listen(server, options.address);
  return { port, closed: endWith(signal, server, limits.farewell) };
}

type Answering = AdmissionOptions & {
  readonly readBody: BodyReader;
  /** Whether this replica is about to end. */
  readonly leaves: () => boolean;
  /** The client knows the path. */
  readonly prove: () => void;
  readonly time: number;
};

/** Answers a request; never throws. */
async function answer(request: IncomingMessage, response: ServerResponse, options: Answering) {
  const { readBody, review, onError, leaves, prove, isServed, time } = options;
  let isProven = false;
  const send = (status: number, body: JsonObject, headers: Record<string, string> = {}) => {
    const text = JSON.stringify(body);
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      // What remains of a body is not a request; and an end is not put off by new ones.
      ...(request.complete && !leaves() ? {} : { connection: 'close' }),
      ...headers,
    });
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
    prove();
    if (request.headers.expect !== undefined) response.writeContinue();
    const { outcome, response: reviewed } = await readBody(request, (read) => {
      body = read;
      return review(read);
    });
    send(200, reviewed);
    return outcome;
  } catch (error) {
    if (error instanceof RequestError) {
      send(error.status, { error: error.message }, error.status === 405 ? { allow: 'POST' } : {});
      return 'error';
    }
    onError(error);
    const passed = passReview(body);
    if (passed === undefined) send(500, { error: 'the review failed' });
    else send(200, passed);
    return 'error';
  }
}

/** Ends an answer when the body that it refuses has been sent, or so much of it: a client that is still writing would not see it. */
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

/** @throws RequestError for what is not a POST of JSON to the right path */
function checkHead({ url = '', method, headers }: IncomingMessage, isServed: (path: string) => boolean): void {
  // The API server adds `?timeout=2s`.
  if (!isServed(url.split('?')[0] ?? '')) throw new RequestError(404, 'not found');
  if (method !== 'POST') throw new RequestError(405, 'only POST');
  if (!MEDIA_TYPE.test(headers['content-type'] ?? '')) {
    throw new RequestError(415, 'content-type: expected application/json');
  }
}

/** Lets the object of a review pass as it is; undefined where nobody can be told so. */
function passReview(body: JsonObject): JsonObject | undefined {
  const uid = stringAt(objectAt(body, 'request'), 'uid');
  const apiVersion = stringAt(body, 'apiVersion');
  return uid === undefined ? undefined : { apiVersion, kind: 'AdmissionReview', response: { uid, allowed: true } };
}

/** Answers what is no HTTP, or not in time, and gives whether it did. Of what failed before there was HTTP nothing is left to answer. */
function refuseBrokenHead({ code = '' }: NodeJS.ErrnoException, socket: Duplex): boolean {
  const isTimeout = code === 'ERR_HTTP_REQUEST_TIMEOUT';
  if (!socket.writable || !(isTimeout || code.startsWith('HPE_'))) {
    socket.destroy();
    return false;
  }
  // Clients open connections ahead: one that has not begun to ask is idle.
  if (isTimeout && socket instanceof TLSSocket && socket.bytesRead === 0) return false;
  const [status, message] = isTimeout
    ? ['408 Request Timeout', 'no whole request in time']
    : code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'the headers are too large']
      : ['400 Bad Request', 'that is no HTTP'];
  const text = JSON.stringify({ error: message });
  const head = ['content-type: application/json', `content-length: ${text.length}`, 'connection: close'];
  socket.end(`HTTP/1.1 ${status}\r\n${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
  return true;
}

/** Keeps the server's certificate as it should be; one that cannot be used leaves the one before. */
function serveCertificate(server: Server, { certificate, onError }: AdmissionOptions): void {
  const exchange = () => {
    const current = certificate.current();
    if (current === undefined) return;
    try {
      // Whatever is not named here is forgotten, the version too.
      server.setSecureContext({ cert: current.cert, key: current.key, minVersion: 'TLSv1.2' });
    } catch (error) {
      onError(error);
    }
  };
  certificate.onChange(exchange);
  exchange();
}

/** Takes no new connection when the signal aborts, closes idle ones, and gives requests under way a while. */
function endWith(signal: AbortSignal, server: Server, farewell: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      const timer = setTimeout(() => server.closeAllConnections(), farewell);
      server.close(() => {
        clearTimeout(timer);
        resolve();
      });
    };
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}
