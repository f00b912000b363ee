import { setMaxListeners } from 'node:events';
import { buildConnector, Pool } from 'undici';
import { onAbort, untilAborted } from '../kit/abort.ts';
import { type Clock, systemClock } from '../kit/clock.ts';
import { parseJson } from '../kit/json.ts';
import type { ClusterAccess, TlsOptions } from './access.ts';
import { ApiError, ConnectionError } from './errors.ts';

/** One finished request, for metrics. `code` is the HTTP status, or `error` if there was no answer. */
export type ApiRequest = { readonly verb: string; readonly resource: string; readonly code: string };

export type RequestOptions = {
  readonly signal?: AbortSignal | undefined;
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string;
  /** Asks for the object's metadata alone (`PartialObjectMetadata`), for writes that need no more. */
  readonly metadataOnly?: boolean;
  /** Returns the answer as text instead of parsing it: the proxied answer of a pod need not be JSON. */
  readonly asText?: boolean;
  /** Milliseconds from the first byte of the answer to its last; default: two minutes. */
  readonly completeMs?: number;
};

/** A JSON client of the API server over one keep-alive pool. */
export type ApiClient = {
  /** host:port of the server, for messages. */
  readonly host: string;
  /** The addresses to which a connection was made so far; the set grows as connections are made. */
  addresses(): ReadonlySet<string>;
  /**
   * Sends a request and parses the JSON answer. Throws {@link ApiError} for an answer that is not a success and {@link
   * ConnectionError} if there was no answer. `path` includes the query.
   */
  request(verb: ApiVerb, path: string, options?: RequestOptions): Promise<unknown>;
  /** Opens a watch and returns its chunks as they arrive. Throws like `request` before the first chunk. */
  stream(path: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>>;
  close(): Promise<void>;
};

/** The verbs of the Kubernetes API that the program uses, as RBAC and audit logs name them. */
export type ApiVerb = 'get' | 'list' | 'create' | 'update' | 'patch' | 'delete';

const METHODS = { get: 'GET', list: 'GET', create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;
/** A token from a file or a plug-in is used for this long, unless the server answers 401 earlier. */
const LOGIN_MS = 60_000;
/** The longest wait for an answer to begin, and between two pieces of its body. */
const SILENCE_MS = 30_000;
/**
 * The longest time from the beginning of an answer to its end: a body that arrives slowly must not block a worker for
 * ever.
 */
const COMPLETE_MS = 120_000;
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

/** The headers that log in, and when they were requested. */
type Login = { readonly headers: Readonly<Record<string, string>>; readonly at: number };

type Sent = Omit<RequestOptions, 'signal'> & {
  readonly verb: ApiVerb;
  readonly path: string;
  readonly isWatch?: boolean;
};

export type ClientOptions = {
  readonly access: ClusterAccess;
  /** The most connections at once; each watch holds one. */
  readonly connections: number;
  readonly userAgent: string;
  readonly now: () => number;
  readonly onRequest?: (request: ApiRequest) => void;
  /** Where the addresses are recorded; several clients of one server may share the set. */
  readonly addresses?: Set<string>;
  /** Milliseconds without a byte after which an answer counts as broken off; default: 30 seconds. */
  readonly silenceMs?: number;
  /** Default: the timer of the machine. */
  readonly after?: Clock['after'];
};

/** Creates the client; nothing is sent before the first request. */
export function createClient(options: ClientOptions): ApiClient {
  const { access, connections, userAgent, now, onRequest, silenceMs = SILENCE_MS, after = systemClock.after } = options;
  const url = new URL(access.server);
  const prefix = url.pathname.replace(/\/$/, '');
  // When the pool is destroyed, undici leaves a socket that is still connecting until its time-out, and the process
  // would wait for it.
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);
  const connectorFor = (tls: TlsOptions) =>
    buildConnector({
      ...tls,
      ca: tls.ca as Buffer | undefined,
      timeout: 10_000,
      keepAlive: true,
      signal: ending.signal,
    });
  let tls = access.tls();
  let connector = connectorFor(tls);
  /** The authority of the API server, or our certificate, may be rotated while we run. */
  function connectorNow(): typeof connector {
    const now = access.tls();
    if (now !== tls) {
      tls = now;
      connector = connectorFor(tls);
    }
    return connector;
  }
  const addresses = options.addresses ?? new Set<string>();
  const pool = new Pool(url.origin, {
    connections,
    connect: (target, callback) =>
      connectorNow()(target, (error, socket) => {
        if (error !== null) return callback(error, null);
        if (socket.remoteAddress !== undefined) addresses.add(socket.remoteAddress);
        callback(null, socket);
      }),
    headersTimeout: silenceMs,
    keepAliveTimeout: 60_000,
  });
  let login: Login | undefined;
  let loggingIn: Promise<Login> | undefined;

  /** Runs the plug-in or reads the file, once for all callers that need it at the moment. */
  function logIn(): Promise<Login> {
    loggingIn ??= access
      .authenticate()
      .then((headers) => {
        login = { headers, at: now() };
        return login;
      })
      .finally(() => {
        loggingIn = undefined;
      });
    return loggingIn;
  }

  /** Returns the current login; undefined if the caller has to wait for one. */
  function held(fresh: boolean): Login | undefined {
    if (login === undefined || fresh) return undefined;
    // The old login stays in use meanwhile: a slow plug-in must not block requests that could go on. If the server
    // refuses it, it answers 401.
    if (now() - login.at > LOGIN_MS) logIn().catch(() => undefined);
    return login;
  }

  async function send(request: Sent, signal: AbortSignal, fresh = false) {
    const { verb, path, body, contentType = 'application/json', metadataOnly = false, isWatch } = request;
    const { headers } = held(fresh) ?? (await untilAborted(logIn(), signal));
    try {
      const answer = pool.request({
        method: METHODS[verb],
        path: prefix + path,
        headers: {
          ...headers,
          accept: metadataOnly ? METADATA_ONLY : 'application/json',
          'user-agent': userAgent,
          ...(body === undefined ? {} : { 'content-type': contentType }),
        },
        body: body === undefined ? null : apiJson(body),
        signal,
        // A watch may be silent for longer than any fixed time; the reflector decides when it is dead.
        bodyTimeout: isWatch ? 0 : silenceMs,
      });
      // undici looks at a signal only once it has a connection. Without a connection, nothing was sent and nothing will
      // be.
      return await untilAborted(answer, signal);
    } catch (error) {
      onRequest?.({ verb, resource: resourceOf(path), code: 'error' });
      if (signal.aborted) throw error;
      throw new ConnectionError(
        `cannot reach the API server at ${url.host}: ${reasonOf(error)}; check that it runs, and that --kubeconfig and --context select the right cluster`,
      );
    }
  }

  async function answered(request: Sent, signal: AbortSignal) {
    const response = await send(request, signal);
    if (response.statusCode !== 401) return response;
    onRequest?.({ verb: request.verb, resource: resourceOf(request.path), code: '401' });
    await response.body.dump();
    return send(request, signal, true);
  }

  /** Reads a whole body within a time limit of its own. */
  async function read(body: { text(): Promise<string> }, completeMs: number, own: AbortController): Promise<string> {
    const stop = after(completeMs, () => own.abort(new Error(`it was not complete after ${completeMs / 1000} s`)));
    try {
      return await body.text();
    } finally {
      stop();
    }
  }

  function failure(verb: ApiVerb | 'watch', path: string, status: number, text: string, retryAfter: unknown): ApiError {
    const seconds = typeof retryAfter === 'string' ? Number(retryAfter) : Number.NaN;
    const delay = Number.isFinite(seconds) ? Math.min(seconds, 600) * 1000 : undefined;
    const target = path.split('?')[0] ?? path;
    return new ApiError(status, parseJson(text) ?? { message: text.slice(0, 200) }, `${verb} ${target}`, delay);
  }

  return {
    host: url.host,
    addresses: () => addresses,
    async request(verb, path, options = {}) {
      const { signal, completeMs = COMPLETE_MS } = options;
      // One controller for each request: undici adds a listener to the signal that it gets, and thousands of requests
      // may wait for one signal.
      const own = new AbortController();
      const forget = signal && onAbort(signal, () => own.abort(signal.reason));
      let text: string;
      let response: Awaited<ReturnType<typeof answered>>;
      try {
        response = await answered({ ...options, verb, path }, own.signal);
        try {
          text = await read(response.body, completeMs, own);
        } catch (error) {
          if (signal?.aborted) throw error;
          throw new ConnectionError(`the API server at ${url.host} ended its answer too early: ${reasonOf(error)}`);
        }
      } finally {
        forget?.();
      }
      onRequest?.({ verb, resource: resourceOf(path), code: String(response.statusCode) });
      if (response.statusCode >= 300) {
        throw failure(verb, path, response.statusCode, text, response.headers['retry-after']);
      }
      return options.asText ? text : parseJson(text);
    },
    async stream(path, signal) {
      const own = new AbortController();
      const forget = onAbort(signal, () => own.abort(signal.reason));
      const response = await answered({ verb: 'list', path, isWatch: true }, own.signal).catch((error: unknown) => {
        forget();
        throw error;
      });
      response.body.once('close', forget);
      onRequest?.({ verb: 'watch', resource: resourceOf(path), code: String(response.statusCode) });
      if (response.statusCode >= 300) {
        const text = await read(response.body, silenceMs, own);
        throw failure('watch', path, response.statusCode, text, response.headers['retry-after']);
      }
      return response.body;
    },
    async close() {
      ending.abort();
      await pool.destroy();
    },
  };
}

/**
 * Returns JSON as the API server's own encoder (Go's `encoding/json`) writes it: a `test` operation compares strings in
 * that escaped form.
 */
function apiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Returns the resource (`pods`, `nodes`, `leases` …) of a request path. */
function resourceOf(path: string): string {
  const parts = (path.split('?')[0] ?? '').split('/').filter((part) => part !== '');
  const rest = parts[0] === 'api' ? parts.slice(2) : parts.slice(3);
  if (rest.length === 0) return parts[0] ?? 'root';
  const named = rest[0] === 'namespaces' && rest.length > 2 ? rest.slice(2) : rest;
  return named.length > 2 ? `${named[0]}/${named[2]}` : (named[0] ?? 'root');
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return code || error.message || error.name;
}
