import { type Dispatcher, Pool, ProxyAgent } from 'undici';
import { untilAborted } from '../kit/abort.ts';
import { type Clock, systemClock } from '../kit/clock.ts';
import { parseJson } from '../kit/json.ts';
import { createConnector } from '../kit/network/connector.ts';
import type { ClusterAccess } from './access.ts';
import { ApiError, ConnectionError } from './errors.ts';
import { exchange, type HttpAnswer, type RunningExchange } from './exchange.ts';

/** One finished request, for metrics. `code` is the HTTP status, or `error` if there was no answer. */
export type ApiRequest = { readonly verb: string; readonly resource: string; readonly code: string };

export type RequestOptions = {
  readonly signal?: AbortSignal | undefined;
  /** The body of a patch is a JSON Patch (RFC 6902) if it is a list, else a merge patch (RFC 7386). */
  readonly body?: unknown;
  /** Asks for the object's metadata alone (`PartialObjectMetadata`), for writes that need no more. */
  readonly metadataOnly?: boolean;
  /**
   * Makes the reader of a successful answer's body; the result is then undefined. It is called for each attempt, so that a request
   * that is sent again is read from its beginning. What the reader throws ends the request.
   */
  readonly reader?: () => BodyReader;
  /** Milliseconds from the first byte of the answer to its last; default: two minutes. */
  readonly completeMs?: number;
};

/** Takes the body of one answer in pieces. */
export type BodyReader = {
  take(piece: Buffer): void;
  /** Takes the end. Throws {@link ConnectionError} if the body is not complete. */
  end(): void;
};

/** The receiver of a watch. Its functions are called as the bytes arrive, without a promise in between. */
export type WatchOptions = {
  readonly signal: AbortSignal;
  /** Called once, when the server has accepted the watch. */
  readonly onOpen: () => void;
  /** Takes the next bytes. What it throws ends the watch. */
  readonly onPiece: (piece: Buffer) => void;
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
  /** Watches until the server ends the answer. Throws like `request`, and what `onPiece` throws. */
  watch(path: string, options: WatchOptions): Promise<void>;
  close(): Promise<void>;
};

/** A client that can change its connections. */
export type ConnectedClient = ApiClient & {
  /**
   * Opens new connections, at most every ten seconds. Call it when something shows that those of before may be dead without a sign.
   * Watches on those are broken; other requests only if no byte arrives on them for five seconds: the server may just be slow.
   */
  renew(): void;
};

/**
 * The verbs of the Kubernetes API that the program uses, as RBAC and audit logs name them, and `apply`: a patch that creates. Only its
 * path has the name of a new object, so only for it can RBAC limit the right to create to a name.
 */
export type ApiVerb = 'get' | 'list' | 'create' | 'update' | 'patch' | 'apply' | 'delete';

const METHODS = {
  get: 'GET',
  list: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  apply: 'PATCH',
  delete: 'DELETE',
} as const;
/** A token from a file or a plug-in is used for this long, unless the server answers 401 earlier. */
const LOGIN_MS = 60_000;
/** The longest wait for an answer to begin, and between two pieces of its body. */
const SILENCE_MS = 30_000;
/** The longest time from the beginning of an answer to its end: a body that arrives slowly must not block a worker for ever. */
const COMPLETE_MS = 120_000;
/** The longest `Retry-After` that is honoured, by lists, watches, writes and commands. */
const LONGEST_ASKED_MS = 30_000;
/** The least time between two renewals of the connections: a mistake about them must not cost more than that. */
const RENEW_MS = 10_000;
/** How long a request on a connection of before may stay without a byte. */
const DOUBTED_MS = 5_000;
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

/** The headers that log in, and when they were requested. */
type ClientLogin = { readonly headers: Readonly<Record<string, string>>; readonly at: number };

type SentCall = {
  readonly verb: ApiVerb | 'watch';
  readonly path: string;
  readonly options: Omit<RequestOptions, 'signal'>;
  readonly watch?: WatchOptions;
  readonly onPiece?: ((piece: Buffer) => void) | undefined;
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

type ClientState = ClientOptions & {
  readonly url: URL;
  /** What stands before each path. */
  readonly prefix: string;
  readonly silenceMs: number;
  readonly after: Clock['after'];
  readonly addresses: Set<string>;
  readonly ending: AbortController;
  pool: Dispatcher;
  readonly running: Set<RunningExchange>;
  renewedAt: number;
  login: ClientLogin | undefined;
  loggingIn: Promise<ClientLogin> | undefined;
};

const NEVER = new AbortController().signal;

/** Creates the client; nothing is sent before the first request. */
export function createClient(options: ClientOptions): ConnectedClient {
  const { silenceMs = SILENCE_MS, after = systemClock.after, addresses = new Set<string>() } = options;
  const url = new URL(options.access.server);
  const prefix = url.pathname.replace(/\/$/, '');
  const given = { ...options, silenceMs, after, addresses, url, prefix, ending: new AbortController() };
  const own = { running: new Set<RunningExchange>(), renewedAt: Number.NEGATIVE_INFINITY };
  const client: ClientState = { ...given, ...own, pool: openPool(given), login: undefined, loggingIn: undefined };
  return {
    host: url.host,
    addresses: () => addresses,
    async request(verb, path, options = {}) {
      const reader = options.reader?.();
      const text = await answered(client, { verb, path, options, onPiece: reader?.take }, options.signal ?? NEVER);
      return reader === undefined ? parseJson(text) : void reader.end();
    },
    async watch(path, options) {
      const { signal, onPiece } = options;
      await answered(client, { verb: 'watch', path, options: {}, watch: options, onPiece }, signal);
    },
    renew: () => renew(client),
    async close() {
      client.ending.abort();
      for (const one of client.running) one.fail(new Error('the client was closed'));
      await client.pool.destroy();
    },
  };
}

type PoolOptions = Pick<ClientState, 'url' | 'connections' | 'access' | 'ending' | 'addresses' | 'silenceMs'>;

function openPool({ url, connections, access, ending, addresses, silenceMs }: PoolOptions): Dispatcher {
  const common = { connections, headersTimeout: silenceMs, keepAliveTimeout: 60_000 };
  if (access.proxy !== undefined) {
    const requestTls = { ...access.tls(), timeout: 10_000 };
    // The proxy may be silent, too.
    const clientFactory = (proxy: URL, how: object) => new Pool(proxy, { ...how, headersTimeout: silenceMs });
    return new ProxyAgent({ ...common, ...access.proxy, requestTls, clientFactory });
  }
  return new Pool(url.origin, {
    ...common,
    connect(target, callback) {
      // The authority of the API server, or our certificate, may be rotated while we run.
      const how = { ...access.tls(), timeout: 10_000, keepAlive: true };
      createConnector(how, ending.signal)(target, (error, socket) => {
        if (error !== null) return callback(error, null);
        if (socket.remoteAddress !== undefined) addresses.add(socket.remoteAddress);
        callback(null, socket);
      });
    },
  });
}

function renew(client: ClientState): void {
  const { running } = client;
  if (client.ending.signal.aborted || client.now() - client.renewedAt < RENEW_MS) return;
  client.renewedAt = client.now();
  const [former, doubted] = [client.pool, [...running]];
  client.pool = openPool(client);
  const renewed = new Error('its connections were renewed');
  for (const one of doubted) {
    one.heard = false;
    if (one.isWatch) one.fail(renewed);
  }
  // It ends with its last request.
  void former.close();
  client.after(DOUBTED_MS, () => {
    for (const one of doubted) if (!one.heard && running.has(one)) one.fail(renewed);
  });
}

/** Sends a request, and again with a new login if the server refuses this one. Returns the text of a successful answer. */
async function answered(client: ClientState, request: SentCall, signal: AbortSignal): Promise<string> {
  let answer = await send(client, request, signal);
  if (answer.status === 401) {
    tell(client, request, 401);
    answer = await send(client, request, signal, true);
  }
  const { status, text, retryAfter } = answer;
  const isOpened = request.watch !== undefined && status < 300;
  if (!isOpened) tell(client, request, status);
  if (status < 300) return text;
  const seconds = typeof retryAfter === 'string' ? Number(retryAfter) : Number.NaN;
  const delay = Number.isFinite(seconds) ? Math.min(seconds * 1000, LONGEST_ASKED_MS) : undefined;
  const title = `${request.verb} ${request.path.split('?')[0]}`;
  throw new ApiError(status, parseJson(text) ?? { message: text.slice(0, 200) }, title, delay);
}

function tell({ onRequest }: ClientState, { verb, path }: SentCall, code: number | 'error'): void {
  onRequest?.({ verb, resource: resourceOf(path), code: String(code) });
}

/** Sends a request once; `fresh`: with a new login. */
function send(client: ClientState, request: SentCall, signal: AbortSignal, fresh = false): Promise<HttpAnswer> {
  const { login } = client;
  // Nearly always there is a login, and each promise in between would cost every request.
  if (login === undefined || fresh) {
    return untilAborted(logIn(client), signal).then((given) => sendAs(client, given, request, signal));
  }
  // The old login stays in use meanwhile: a slow plug-in must not block requests that could go on. If the server
  // refuses it, it answers 401.
  if (client.now() - login.at > LOGIN_MS) logIn(client).catch(() => undefined);
  return sendAs(client, login, request, signal);
}

/** Runs the plug-in or reads the file, once for all callers that need it at the moment. */
function logIn(client: ClientState): Promise<ClientLogin> {
  client.loggingIn ??= client.access
    .authenticate()
    .then((headers) => {
      client.login = { headers, at: client.now() };
      return client.login;
    })
    .finally(() => {
      client.loggingIn = undefined;
    });
  return client.loggingIn;
}

function sendAs(client: ClientState, login: ClientLogin, request: SentCall, signal: AbortSignal): Promise<HttpAnswer> {
  const { pool, running, silenceMs, after } = client;
  const { verb, path, options, watch, onPiece } = request;
  const { body, metadataOnly = false } = options;
  const { completeMs = watch === undefined ? COMPLETE_MS : silenceMs } = options;
  const headers: Record<string, string> = {
    ...login.headers,
    accept: metadataOnly ? METADATA_ONLY : 'application/json',
    'user-agent': client.userAgent,
  };
  if (body !== undefined) headers['content-type'] = contentTypeOf(verb, body);
  const sent = {
    origin: client.url.origin,
    method: verb === 'watch' ? 'GET' : METHODS[verb],
    path: client.prefix + path,
    headers,
    body: body === undefined ? null : apiJson(body),
    // A watch may be silent for longer than any fixed time; the reflector decides when it is dead.
    bodyTimeout: watch === undefined ? silenceMs : 0,
  };
  const late = () => new Error(`it was not complete after ${completeMs / 1000} s`);
  const opened = (status: number) => {
    tell(client, request, status);
    watch?.onOpen();
  };
  return exchange(pool, sent, {
    running,
    signal,
    limit: (onLate) => after(completeMs, () => onLate(late())),
    onOpen: watch && opened,
    onPiece,
    broken: (cause, hasBegun) => broken(client, request, cause, hasBegun),
  });
}

function broken(client: ClientState, request: SentCall, cause: Error, hasBegun: boolean): Error {
  const { proxy } = client.access;
  const host = `${client.url.host}${proxy ? ` through the proxy ${new URL(proxy.uri).host}` : ''}`;
  if (hasBegun && request.watch !== undefined) return cause;
  const reason = reasonOf(cause);
  if (hasBegun) return new ConnectionError(`the API server at ${host} ended its answer too early: ${reason}`);
  tell(client, request, 'error');
  return new ConnectionError(
    isUntrusted(cause)
      ? `the certificate of the API server at ${host} is not trusted: ${reason}; check certificate-authority and tls-server-name in the kubeconfig, and that no proxy is in between`
      : `cannot reach the API server at ${host}: ${reason}; check that it runs, and that --kubeconfig and --context select the right cluster`,
  );
}

/** Returns the type of a request's body. */
export function contentTypeOf(verb: SentCall['verb'], body: unknown): string {
  if (verb === 'apply') return 'application/apply-patch+yaml';
  if (verb !== 'patch') return 'application/json';
  return Array.isArray(body) ? 'application/json-patch+json' : 'application/merge-patch+json';
}

/**
 * Returns JSON as the API server's own encoder (Go's `encoding/json`) writes it: a `test` operation compares strings in that escaped form.
 */
function apiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const RESOURCE = /^\/(?:api|apis\/[^/?]+)\/[^/?]+(?:\/namespaces\/[^/?]+(?=\/))?\/([^/?]+)(?:\/[^/?]+\/([^/?]+))?/;

/** Returns the resource of a request path: `pods`, `leases`, `pods/eviction`; for a path outside of the API its first part. */
function resourceOf(path: string): string {
  const [, resource, subresource] = RESOURCE.exec(path) ?? [];
  if (resource !== undefined) return subresource === undefined ? resource : `${resource}/${subresource}`;
  return /^\/([^/?]+)/.exec(path)?.[1] ?? 'root';
}

/** Whether the server answered, but with a certificate that our authorities did not sign, or of another name or time. */
function isUntrusted(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /CERT|ISSUER|SIGNATURE/.test(String(error.code));
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The message names the status that a proxy answered.
  const code = 'code' in error && typeof error.code === 'string' && error.code !== 'UND_ERR_ABORTED' ? error.code : '';
  const words = IN_WORDS[code];
  return words === undefined ? code || error.message || error.name : `${words} (${code})`;
}

/** What codes mean that a reader may not know. */
const IN_WORDS: Readonly<Record<string, string>> = {
  EHOSTUNREACH: 'there is no route to it',
  ENETUNREACH: 'there is no route to it',
  ENOTFOUND: 'its name was not found in the DNS',
  EAI_AGAIN: 'the DNS did not answer',
  ETIMEDOUT: 'the connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'the connection timed out',
  UND_ERR_SOCKET: 'the connection was closed',
};
