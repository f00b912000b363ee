import { setMaxListeners } from 'node:events';
import { buildConnector, Pool } from 'undici';
import { parseJson } from '../placement/json.ts';
import type { ClusterAccess } from './access.ts';
import { ApiError, ConnectionError } from './errors.ts';

/** One finished request, for metrics. `code` is the HTTP status, or `error` where there was no answer. */
export type ApiRequest = { readonly verb: string; readonly resource: string; readonly code: string };

export type RequestOptions = {
  readonly signal?: AbortSignal | undefined;
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string;
  /** Answer with the object's metadata alone (`PartialObjectMetadata`): for writes that need no more. */
  readonly metadataOnly?: boolean;
};

/** A JSON client of the API server over one keep-alive pool. */
export type ApiClient = {
  /** host:port of the server, for messages. */
  readonly host: string;
  /** The addresses that it was connected to at; they grow as connections are made. */
  addresses(): ReadonlySet<string>;
  /**
   * Sends a request and reads its JSON. Throws {@link ApiError} for an answer that is no success and
   * {@link ConnectionError} where there was none. `path` holds the query.
   */
  request(verb: ApiVerb, path: string, options?: RequestOptions): Promise<unknown>;
  /** Opens a watch and gives its chunks as they come. Throws as `request` does before the first chunk. */
  stream(path: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>>;
  close(): Promise<void>;
};

/** The verbs of the Kubernetes API that we use, as RBAC and audit logs name them. */
export type ApiVerb = 'get' | 'list' | 'create' | 'update' | 'patch' | 'delete';

const METHODS = { get: 'GET', list: 'GET', create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;
/** A token read from a file or a plug-in is good for at least this long; a 401 ends it earlier. */
const LOGIN_MS = 60_000;
const ANSWER_MS = 30_000;
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

export type ClientOptions = {
  readonly access: ClusterAccess;
  /** How many connections at once; watches hold one each. */
  readonly connections: number;
  readonly userAgent: string;
  readonly now: () => number;
  readonly onRequest?: (request: ApiRequest) => void;
};

/** Creates the client; nothing is sent before the first request. */
export function createClient({ access, connections, userAgent, now, onRequest }: ClientOptions): ApiClient {
  const url = new URL(access.server);
  const prefix = url.pathname.replace(/\/$/, '');
  // Destroying the pool leaves a socket that is still connecting to its time-out: the process would wait for it.
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);
  const connect = buildConnector({
    ...access.tls,
    ca: access.tls.ca as Buffer | undefined,
    timeout: 10_000,
    keepAlive: true,
    signal: ending.signal,
  });
  const addresses = new Set<string>();
  const pool = new Pool(url.origin, {
    connections,
    connect: (target, callback) =>
      connect(target, (error, socket) => {
        if (error !== null) return callback(error, null);
        if (socket.remoteAddress !== undefined) addresses.add(socket.remoteAddress);
        callback(null, socket);
      }),
    headersTimeout: ANSWER_MS,
    keepAliveTimeout: 60_000,
    // A watch may be silent for longer than any fixed time; the reflector judges that.
    bodyTimeout: 0,
  });
  let login: { headers: Readonly<Record<string, string>>; at: number } | undefined;

  async function headers(fresh: boolean): Promise<Readonly<Record<string, string>>> {
    if (login === undefined || fresh || now() - login.at > LOGIN_MS) {
      login = { headers: await access.authenticate(), at: now() };
    }
    return login.headers;
  }

  async function send(verb: ApiVerb, path: string, options: RequestOptions, fresh = false) {
    const { body, contentType = 'application/json', metadataOnly = false, signal } = options;
    const logged = await headers(fresh);
    try {
      const answer = pool.request({
        method: METHODS[verb],
        path: prefix + path,
        headers: {
          ...logged,
          accept: metadataOnly ? METADATA_ONLY : 'application/json',
          'user-agent': userAgent,
          ...(body === undefined ? {} : { 'content-type': contentType }),
        },
        body: body === undefined ? null : apiJson(body),
        signal: signal ?? null,
      });
      return await (signal ? untilAborted(answer, signal) : answer);
    } catch (error) {
      onRequest?.({ verb, resource: resourceOf(path), code: 'error' });
      if (signal?.aborted) throw error;
      throw new ConnectionError(
        `cannot reach the API server at ${url.host}: ${reasonOf(error)}; is it up, and is it the one that --kubeconfig and --context mean?`,
      );
    }
  }

  async function answered(verb: ApiVerb, path: string, options: RequestOptions) {
    const response = await send(verb, path, options);
    if (response.statusCode !== 401) return response;
    onRequest?.({ verb, resource: resourceOf(path), code: '401' });
    await response.body.dump();
    return send(verb, path, options, true);
  }

  function failure(verb: ApiVerb, path: string, status: number, text: string, retryAfter: unknown): ApiError {
    const seconds = typeof retryAfter === 'string' ? Number(retryAfter) : Number.NaN;
    const delay = Number.isFinite(seconds) ? Math.min(seconds, 600) * 1000 : undefined;
    const target = path.split('?')[0] ?? path;
    return new ApiError(status, parseJson(text) ?? { message: text.slice(0, 200) }, `${verb} ${target}`, delay);
  }

  return {
    host: url.host,
    addresses: () => addresses,
    async request(verb, path, options = {}) {
      const response = await answered(verb, path, options);
      let text: string;
      try {
        text = await response.body.text();
      } catch (error) {
        if (options.signal?.aborted) throw error;
        throw new ConnectionError(`the API server at ${url.host} broke off its answer: ${reasonOf(error)}`);
      }
      onRequest?.({ verb, resource: resourceOf(path), code: String(response.statusCode) });
      if (response.statusCode >= 300) {
        throw failure(verb, path, response.statusCode, text, response.headers['retry-after']);
      }
      return parseJson(text);
    },
    async stream(path, signal) {
      const response = await answered('list', path, { signal });
      onRequest?.({ verb: 'watch', resource: resourceOf(path), code: String(response.statusCode) });
      if (response.statusCode >= 300) {
        throw failure('list', path, response.statusCode, await response.body.text(), response.headers['retry-after']);
      }
      return response.body;
    },
    async close() {
      ending.abort();
      await pool.destroy();
    },
  };
}

/** undici looks at a signal only once it has a connection; without one, nothing was sent and nothing will be. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // Many requests may listen to one signal; each listener goes with its request.
  setMaxListeners(0, signal);
  return new Promise((resolve, reject) => {
    const abandon = (): void => reject(signal.reason);
    if (signal.aborted) abandon();
    else signal.addEventListener('abort', abandon, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abandon));
  });
}

/** JSON as the API server's own encoder writes it: a `test` compares strings as they were escaped there. */
function apiJson(value: unknown): string {
  return JSON.stringify(value).replace(/[<>&]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}

/** `pods`, `nodes`, `leases` … of a request path. */
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
