import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { type ApiVerb, type ConnectedClient, contentTypeOf, type RequestOptions } from '../../src/kube/api-client.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import { createFaults } from '../simulator/faults.ts';
import { createRest } from '../simulator/http/rest.ts';
import { assign, at, isObject, type JsonObject, list, object } from '../simulator/json.ts';
import { createApi } from '../simulator/objects/api.ts';
import { createRbac } from '../simulator/objects/rbac.ts';
import { findResource, PODS, resourceOf } from '../simulator/objects/resources.ts';
import { notFound, ApiError as Refusal, stale } from '../simulator/objects/status.ts';
import { createStore } from '../simulator/objects/store.ts';
import type { Webhooks } from '../simulator/webhooks/webhooks.ts';
import { createWatchStreams } from './watch-streams.ts';
import { BEGINNING, SENT, type World } from './world.ts';

/** A write of a replica, as it was sent. */
export type Write = { readonly owner: string; readonly verb: ApiVerb; readonly path: string; readonly body: unknown };

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
  /** Called when the answer to a write has arrived. */
  readonly onAnswered: (write: Write, answer: JsonObject) => void;
  /** Whether another webhook removes archaware's tolerations from pods now. */
  readonly strips: () => boolean;
  /** Whether a policy refuses what replicas write to DaemonSets now. */
  readonly refusesTemplates: () => boolean;
  /** The most items of a page. */
  readonly pageSize: number;
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
  clientFor(owner: string): ConnectedClient;
  /** Compacts the history: watches cannot begin before now. */
  compact(): void;
  /** Breaks every watch. */
  breakWatches(): void;
  /**
   * The connections of a process are dead from now on, without a sign: its watches are silent, and nothing that it asks is answered
   * before it opens new ones. Those of the Lease are new after the first request that is given up.
   */
  letConnectionsDie(owner: string): void;
};

/** An answer as text, or as an object that needs no parsing. */
type Reply =
  | { readonly status: number; readonly json: string }
  | { readonly status: number; readonly body: JsonObject };

const METHODS = {
  get: 'GET',
  list: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  apply: 'PATCH',
  delete: 'DELETE',
} as const;
const WRITES: ReadonlySet<ApiVerb> = new Set(['create', 'update', 'patch', 'apply', 'delete']);
const REFUSED: Reply = {
  status: 403,
  body: { reason: 'Forbidden', message: 'daemonsets.apps is forbidden: a policy denied request: hands off' },
};
const LEASES = resourceOf('coordination.k8s.io/v1', 'leases');
const LEASE = /\/namespaces\/([^/]+)\/leases\/([^/?]+)/;
const UNANSWERED_MS = 30_000;
const GATE_KEY = 'supported-arch';

/** Creates an empty cluster. */
export function createModelServer(options: ServerOptions): ModelServer {
  const { world, onSent, onApplied, onAnswered, strips, refusesTemplates, pageSize } = options;
  const store = createStore(20_000);
  const webhooks: Webhooks = {
    async mutate({ resource, writer }, item) {
      if (resource !== PODS || !strips() || writer.manager === 'test') return item;
      const kept = list(at(item, 'spec', 'tolerations')).filter((one) => at(one, 'key') !== GATE_KEY);
      return assign(item, ['spec', 'tolerations'], kept);
    },
    close: async () => [],
  };
  let uids = 0;
  const api = createApi(store, {
    defaultTolerations: true,
    daemonSetGuard: false,
    webhooks,
    wall: () => BEGINNING + world.now(),
    uid: () => `00000000-0000-4000-8000-${String(++uids).padStart(12, '0')}`,
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
  const streams = createWatchStreams(world, store);

  /** The processes whose connections are dead: those of the Lease, and the others with what waits for an answer. */
  const deadForLease = new Set<string>();
  const dead = new Map<string, Set<() => void>>();

  /** A request over a dead connection. */
  function unanswered(owner: string, path: string, signal: AbortSignal | undefined): Promise<never> | undefined {
    const isLease = LEASE.test(path);
    const waiting = dead.get(owner);
    if (isLease ? !deadForLease.has(owner) : waiting === undefined) return undefined;
    return new Promise((_, reject) => {
      signal?.addEventListener('abort', () => {
        if (isLease) deadForLease.delete(owner);
        reject(signal.reason);
      });
      if (isLease) return;
      const broken = () => reject(new ConnectionError(`${owner} ${path}: the connection is dead`));
      waiting?.add(broken);
      // The client waits no longer than that for an answer, and takes another connection then.
      world.clockFor(owner).after(UNANSWERED_MS, () => {
        dead.delete(owner);
        broken();
      });
    });
  }

  function renew(owner: string): void {
    const waiting = dead.get(owner);
    dead.delete(owner);
    for (const broken of waiting ?? []) broken();
    streams.breakAll(owner);
  }

  async function answer(
    method: string,
    path: string,
    body: unknown,
    contentType: string,
    manager: string,
  ): Promise<Reply> {
    const url = new URL(path, 'http://localhost');
    if (Number(url.searchParams.get('limit')) > pageSize) url.searchParams.set('limit', String(pageSize));
    const text = body === undefined ? '' : JSON.stringify(body);
    const call = { method, url, user: 'admin', userAgent: manager, contentType, text, response };
    return attempt(async () => (await rest(call)) ?? { status: 500, body: {} });
  }

  /** Reads or updates a Lease: most requests do. They go past the parts of the server that do not concern a Lease. */
  function answerLease(verb: ApiVerb, path: string, body: unknown): Promise<Reply> | undefined {
    const [, namespace = '', name = ''] = LEASE.exec(path) ?? [];
    if (name === '' || (verb !== 'get' && verb !== 'update')) return undefined;
    return attempt(async () => {
      const current = store.get(LEASES, namespace, name);
      if (current === undefined) throw notFound(LEASES, name);
      if (verb === 'get') return { status: 200, body: current };
      if (at(body, 'metadata', 'resourceVersion') !== at(current, 'metadata', 'resourceVersion'))
        throw stale(LEASES, name);
      const { managedFields } = object(current.metadata);
      return {
        status: 200,
        body: store.put(LEASES, assign(object(body), ['metadata', 'managedFields'], managedFields)),
      };
    });
  }

  function find(path: string): { plural: string; object: JsonObject | undefined } {
    const parts = (path.split('?')[0] ?? '').split('/').filter(Boolean);
    const isCore = parts[0] === 'api';
    const rest = parts.slice(isCore ? 2 : 3);
    const [namespace, plural, name] =
      rest[0] === 'namespaces' && rest.length > 2 ? [rest[1], rest[2], rest[3]] : ['', rest[0], rest[1]];
    const resource = findResource(isCore ? 'v1' : `${parts[1]}/${parts[2]}`, plural ?? '');
    return { plural: plural ?? '', object: resource && name ? store.get(resource, namespace ?? '', name) : undefined };
  }

  /** A request of a replica that has arrived. */
  async function carryOut(owner: string, verb: ApiVerb, path: string, options: RequestOptions): Promise<Reply> {
    const { body, metadataOnly = false } = options;
    const contentType = contentTypeOf(verb, body);
    const lease = answerLease(verb, path, body);
    if (lease !== undefined) return lease;
    if (!WRITES.has(verb)) return answer(METHODS[verb], path, body, contentType, owner);
    const before = find(path);
    const isRefused = refusesTemplates() && verb === 'patch' && before.plural === 'daemonsets';
    const reply = isRefused ? REFUSED : await answer(METHODS[verb], path, body, contentType, owner);
    const after = find(path);
    if (reply.status < 300 && before.object && after.object && before.object !== after.object) {
      onApplied({ by: owner, plural: before.plural, before: before.object, after: after.object });
    }
    if (!metadataOnly || reply.status >= 300) return reply;
    const { kind, apiVersion, metadata } = bodyOf(reply);
    return { status: reply.status, body: { kind, apiVersion, metadata } };
  }

  function request(owner: string, verb: ApiVerb, path: string, options: RequestOptions = {}): Promise<unknown> {
    const { signal } = options;
    if (world.isDead(owner)) return new Promise(() => {});
    if (signal?.aborted) return Promise.reject(signal.reason);
    const lost = unanswered(owner, path, signal);
    if (lost !== undefined) return lost;
    const target = `${owner} ${verb} ${path.split('?')[0]}`;
    const write = { owner, verb, path, body: options.body };
    const isWrite = WRITES.has(verb);
    if (isWrite) onSent(write);
    // Most requests of a calm time are about the Lease.
    if (world.isCalmFor(owner) && LEASE.test(path)) return askedAtOnce(owner, verb, path, options, target);
    return new Promise((resolve, reject) => {
      const broken = () => reject(new ConnectionError(`${target}: the connection broke`));
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      const respond = (reply: Reply, retryAfterMs?: number) =>
        world.add({
          owner,
          what: `answer ${reply.status} to ${target}`,
          run() {
            if (reply.status >= 300) return reject(new ApiError(reply.status, bodyOf(reply), target, retryAfterMs));
            if (isWrite) onAnswered(write, bodyOf(reply));
            try {
              resolve(read(reply, options, 1));
            } catch (error) {
              reject(error);
            }
          },
          /** The answer breaks off. */
          lose() {
            if (reply.status < 300 && options.reader !== undefined) read(reply, options, 0.5);
            broken();
          },
        });
      world.add({
        owner: `${owner}${SENT}`,
        what: target,
        run: async () => respond(await carryOut(owner, verb, path, options)),
        lose: broken,
        refuse: (status) =>
          respond(
            { status, body: { reason: `Status${status}`, message: `refused: ${target}` } },
            status === 429 ? 1000 : undefined,
          ),
      });
    });
  }

  async function askedAtOnce(owner: string, verb: ApiVerb, path: string, options: RequestOptions, target: string) {
    const reply = await carryOut(owner, verb, path, options);
    if (reply.status >= 300) throw new ApiError(reply.status, bodyOf(reply), target);
    return bodyOf(reply);
  }

  return {
    async ask(method, path, body, contentType = 'application/json') {
      const reply = await answer(method, path, body, contentType, 'test');
      return { status: reply.status, body: bodyOf(reply) };
    },
    all: (apiVersion, plural) => store.list(resourceOf(apiVersion, plural)),
    compact: () => store.compact(),
    breakWatches: () => streams.breakAll(),
    letConnectionsDie(owner) {
      deadForLease.add(owner);
      dead.set(owner, dead.get(owner) ?? new Set());
      streams.silence(owner);
    },
    clientFor: (owner) => ({
      host: 'model',
      addresses: () => new Set(),
      request: (verb, path, options) => request(owner, verb, path, options),
      watch: streams.watchFor(owner),
      renew: () => renew(owner),
      async close() {},
    }),
  };
}

async function attempt(act: () => Promise<Reply>): Promise<Reply> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof Refusal) return { status: error.code, body: error.body };
    throw error;
  }
}

/** Gives an answer to the reader of a request in pieces, or parses it. `share`: how much of it arrives before it breaks off. */
function read(reply: Reply, { reader: createReader }: RequestOptions, share: number): unknown {
  if (createReader === undefined) return bodyOf(reply);
  const { take, end } = createReader();
  const bytes = Buffer.from('json' in reply ? reply.json : JSON.stringify(reply.body));
  const size = Math.ceil(bytes.length * share);
  for (let from = 0; from < size; from += PIECE) take(bytes.subarray(from, Math.min(from + PIECE, size)));
  if (share === 1) end();
  return undefined;
}

/** Bytes of a piece of an answer: an item of a list lies in several. */
const PIECE = 700;

function bodyOf(reply: Reply): JsonObject {
  if ('body' in reply) return reply.body;
  const body: unknown = JSON.parse(reply.json);
  return isObject(body) ? body : {};
}
