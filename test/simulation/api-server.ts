import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { ApiClient, ApiVerb, RequestOptions } from '../../src/kube/client.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import { createFaults } from '../simulator/faults.ts';
import { createRest } from '../simulator/http/rest.ts';
import { assign, at, type JsonObject, list, objects, text } from '../simulator/json.ts';
import { createApi } from '../simulator/objects/api.ts';
import { createRbac } from '../simulator/objects/rbac.ts';
import { findResource, PODS, resourceOf } from '../simulator/objects/resources.ts';
import { ApiError as Refusal } from '../simulator/objects/status.ts';
import { createStore, jsonOf, type StoreEvent } from '../simulator/objects/store.ts';
import type { Webhooks } from '../simulator/webhooks/webhooks.ts';
import { watchOver } from '../support/watch-over.ts';
import { BEGINNING, SENT, type World } from './world.ts';

/** A write of a replica, as it was sent. */
export type Write = {
  readonly owner: string;
  readonly verb: ApiVerb;
  readonly path: string;
  readonly body: unknown;
};

/** An object before and after somebody wrote it. */
export type Applied = {
  readonly by: string;
  readonly plural: string;
  readonly before: JsonObject;
  readonly after: JsonObject;
};

export type ServerOptions = {
  readonly world: World;
  readonly onSent: (write: Write) => void;
  readonly onApplied: (applied: Applied) => void;
  /** Whether another webhook removes archaware's tolerations from pods now. */
  readonly strips: () => boolean;
  /** Whether a policy refuses what replicas write to DaemonSets now. */
  readonly refusesTemplates: () => boolean;
};

/** The rules of the embedded cluster without its HTTP: every request, answer and watch event waits in the world. */
export type ModelServer = {
  /** Carries out a request of another client at once. */
  ask(
    method: string,
    path: string,
    body?: unknown,
    contentType?: string,
  ): Promise<{ status: number; body: JsonObject }>;
  /** The objects of a kind now. */
  all(apiVersion: string, plural: string): readonly JsonObject[];
  clientFor(owner: string): ApiClient;
  /** Compacts the history: watches cannot begin before now. */
  compact(): void;
  /** Breaks every watch. */
  breakWatches(): void;
};

const METHODS = { get: 'GET', list: 'GET', create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;
const WRITES: ReadonlySet<ApiVerb> = new Set(['create', 'update', 'patch', 'delete']);
const REFUSED: { status: number; body: JsonObject } = {
  status: 403,
  body: { reason: 'Forbidden', message: 'daemonsets.apps is forbidden: a policy denied request: hands off' },
};
const BOOKMARK_MS = 60_000;
const GATE_KEY = 'supported-arch';

type Stream = {
  readonly owner: string;
  readonly plural: string;
  queue: string[];
  isPlanned: boolean;
  channel: Channel;
};
type Channel = { push(line: string): void; end(error?: unknown): void; readonly chunks: AsyncIterable<Buffer> };

/** Creates an empty cluster. */
export function createModelServer(options: ServerOptions): ModelServer {
  const { world, onSent, onApplied, strips, refusesTemplates } = options;
  const store = createStore(20_000);
  const webhooks: Webhooks = {
    async mutate({ resource, writer }, item) {
      if (resource !== PODS || !strips() || writer.manager === 'test') return item;
      const kept = list(at(item, 'spec', 'tolerations')).filter((one) => at(one, 'key') !== GATE_KEY);
      return assign(item, ['spec', 'tolerations'], kept);
    },
    close: async () => [],
  };
  const api = createApi(store, {
    defaultTolerations: true,
    daemonSetGuard: false,
    webhooks,
    holdTermination: () => false,
    wall: () => BEGINNING + world.now(),
  });
  const rest = createRest({
    store,
    api,
    rbac: createRbac(store),
    watches: {
      start: () => {
        throw new Error('watches of the model are its own');
      },
      closeAll() {},
      expireAll() {},
      stall() {},
      count: () => 0,
    },
    faults: createFaults(),
    adminUser: 'admin',
    gitVersion: 'v1.37.2',
    addToken() {},
  });
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const streams = new Set<Stream>();

  store.subscribe((event) => {
    for (const stream of streams) if (stream.plural === event.resource.plural) enqueue(stream, lineOf(event));
  });

  function enqueue(stream: Stream, line: string): void {
    stream.queue.push(line);
    planNext(stream);
  }

  /** Sends bookmarks, as the real server does about once a minute: a watch without events is not silent. */
  function bookmark(stream: Stream): void {
    world.clockFor(stream.owner).after(BOOKMARK_MS, () => {
      if (!streams.has(stream)) return;
      const metadata = { resourceVersion: String(store.version()) };
      enqueue(stream, JSON.stringify({ type: 'BOOKMARK', object: { kind: 'Bookmark', metadata } }));
      bookmark(stream);
    });
  }

  function planNext(stream: Stream): void {
    const [line] = stream.queue;
    if (stream.isPlanned || line === undefined) return;
    stream.isPlanned = true;
    const go = () => {
      stream.isPlanned = false;
      stream.queue.shift();
      if (!streams.has(stream)) return;
      stream.channel.push(line);
      planNext(stream);
    };
    world.add({
      owner: stream.owner,
      what: `${stream.owner} sees ${titleOf(line)}`,
      run: go,
      repeat: () => streams.has(stream) && stream.channel.push(line),
      lose() {
        streams.delete(stream);
        stream.channel.end(new ConnectionError('the watch broke'));
      },
    });
  }

  async function answer(method: string, path: string, body: unknown, contentType: string, manager: string) {
    const url = new URL(path, 'http://localhost');
    const call = {
      method,
      url,
      user: 'admin',
      userAgent: manager,
      contentType,
      text: body === undefined ? '' : JSON.stringify(body),
      response,
    };
    try {
      const reply = await rest(call);
      return { status: reply?.status ?? 500, body: parsed(reply?.json ?? '{}') };
    } catch (error) {
      if (error instanceof Refusal) return { status: error.code, body: error.body };
      throw error;
    }
  }

  function find(path: string): { plural: string; object: JsonObject | undefined } {
    const { pathname } = new URL(path, 'http://localhost');
    const parts = pathname.split('/').filter(Boolean);
    const isCore = parts[0] === 'api';
    const rest = parts.slice(isCore ? 2 : 3);
    const [namespace, plural, name] =
      rest[0] === 'namespaces' && rest.length > 2 ? [rest[1], rest[2], rest[3]] : ['', rest[0], rest[1]];
    const resource = findResource(isCore ? 'v1' : `${parts[1]}/${parts[2]}`, plural ?? '');
    return { plural: plural ?? '', object: resource && name ? store.get(resource, namespace ?? '', name) : undefined };
  }

  /** A request of a replica that has arrived. */
  async function carryOut(owner: string, verb: ApiVerb, path: string, options: RequestOptions) {
    const { body, contentType = 'application/json', metadataOnly = false } = options;
    const before = find(path);
    const isRefused = refusesTemplates() && verb === 'patch' && before.plural === 'daemonsets';
    const reply = isRefused ? REFUSED : await answer(METHODS[verb], path, body, contentType, owner);
    const after = find(path);
    if (reply.status < 300 && WRITES.has(verb) && before.object && after.object && before.object !== after.object) {
      onApplied({ by: owner, plural: before.plural, before: before.object, after: after.object });
    }
    const { kind, apiVersion, metadata } = reply.body;
    return metadataOnly && reply.status < 300 ? { status: reply.status, body: { kind, apiVersion, metadata } } : reply;
  }

  function request(owner: string, verb: ApiVerb, path: string, options: RequestOptions = {}): Promise<unknown> {
    const { signal } = options;
    if (world.isDead(owner)) return new Promise(() => {});
    if (signal?.aborted) return Promise.reject(signal.reason);
    const target = `${owner} ${verb} ${path.split('?')[0]}`;
    if (WRITES.has(verb)) onSent({ owner, verb, path, body: options.body });
    return new Promise((resolve, reject) => {
      const broken = () => reject(new ConnectionError(`${target}: the connection broke`));
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      const respond = (status: number, body: JsonObject, retryAfterMs?: number) =>
        world.add({
          owner,
          what: `answer ${status} to ${target}`,
          run: () => (status < 300 ? resolve(body) : reject(new ApiError(status, body, target, retryAfterMs))),
          lose: broken,
        });
      world.add({
        owner: `${owner}${SENT}`,
        what: target,
        async run() {
          const { status, body } = await carryOut(owner, verb, path, options);
          respond(status, body);
        },
        lose: broken,
        refuse: (status) =>
          respond(
            status,
            { reason: `Status${status}`, message: `refused: ${target}` },
            status === 429 ? 1000 : undefined,
          ),
      });
    });
  }

  function stream(owner: string, path: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const url = new URL(path, 'http://localhost');
    const plural = url.pathname.split('/').at(-1) ?? '';
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      const broken = () => reject(new ConnectionError(`watch ${plural}: the connection broke`));
      world.add({
        owner,
        what: `${owner} watch ${plural}`,
        run() {
          const channel = createChannel();
          const since = store.since(Number(url.searchParams.get('resourceVersion') ?? 0));
          const opened: Stream = { owner, plural, queue: [], isPlanned: false, channel };
          signal.addEventListener(
            'abort',
            () => {
              streams.delete(opened);
              channel.end(signal.reason);
            },
            { once: true },
          );
          resolve(channel.chunks);
          if (since === undefined) {
            channel.push(
              JSON.stringify({
                type: 'ERROR',
                object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' },
              }),
            );
            channel.end();
            return;
          }
          streams.add(opened);
          for (const event of since) if (event.resource.plural === plural) enqueue(opened, lineOf(event));
          bookmark(opened);
        },
        lose: broken,
        refuse: (status) =>
          reject(new ApiError(status, { message: 'refused' }, `watch ${plural}`, status === 429 ? 1000 : undefined)),
      });
    });
  }

  return {
    ask: (method, path, body, contentType = 'application/json') => answer(method, path, body, contentType, 'test'),
    all: (apiVersion, plural) => store.list(resourceOf(apiVersion, plural)),
    compact: () => store.compact(),
    breakWatches() {
      for (const open of streams) open.channel.end(new ConnectionError('the watch broke'));
      streams.clear();
    },
    clientFor: (owner) => ({
      host: 'model',
      addresses: () => new Set(),
      request: (verb, path, options) => request(owner, verb, path, options),
      watch: watchOver((path, signal) => stream(owner, path, signal)),
      async close() {},
    }),
  };
}

function createChannel(): Channel {
  const buffers: Buffer[] = [];
  let ended = false;
  let failure: unknown;
  let wake = () => {};
  return {
    push(line) {
      buffers.push(Buffer.from(`${line}\n`));
      wake();
    },
    end(error) {
      ended = true;
      failure = error;
      wake();
    },
    chunks: {
      async *[Symbol.asyncIterator]() {
        for (;;) {
          const next = buffers.shift();
          if (next !== undefined) yield next;
          else if (ended) {
            if (failure !== undefined) throw failure;
            return;
          } else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      },
    },
  };
}

function lineOf({ type, object }: StoreEvent): string {
  return `{"type":"${type}","object":${jsonOf(object)}}`;
}

function titleOf(line: string): string {
  const { type, object } = parsed(line);
  const kind = text(at(object, 'kind'));
  return `${text(type)} ${kind} ${text(at(object, 'metadata', 'name'))} (${text(at(object, 'metadata', 'resourceVersion'))})`;
}

function parsed(json: string): JsonObject {
  return objects([JSON.parse(json)])[0] ?? {};
}
