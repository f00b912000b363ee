import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { isObject, objectAt, parseJson, stringAt } from '../../../src/kit/json.ts';
import { ApiError } from '../../../test/simulator/objects/status.ts';
import type { Collection } from './collection.ts';
import type { Kinds } from './kinds.ts';
import { PODS_OF_APP } from './objects.ts';

/** The requests that were answered, by `VERB resource`: LIST and WATCH for those that begin one, PAGE for later pages. */
export type Counts = Map<string, number>;

type Routes = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

const BOOKMARK_MS = 60_000;
/** `/api/v1/…` or `/apis/GROUP/VERSION/…`: namespace, resource, name, subresource. */
const PATH =
  /^\/apis?(?:\/[^/]+){1,2}?\/(?:namespaces\/(?<namespace>[^/]+)\/)?(?<resource>pods|nodes|namespaces|daemonsets|leases|events|deployments|replicasets)(?:\/(?<name>[^/]+))?(?:\/(?<sub>[^/]+))?$/;

/** Creates the function that answers requests. */
export function createRoutes(kinds: Kinds, counts: Counts): Routes {
  const leases = new Map<string, string>();

  function count(verb: string, resource: string): void {
    const key = `${verb} ${resource}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }

  return async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'https://server');
    const method = request.method ?? '';
    const { resource = '', name, sub } = PATH.exec(pathname)?.groups ?? {};
    const collection = collectionOf(kinds, resource);
    try {
      if (collection !== undefined && method === 'GET' && name === undefined) {
        if (searchParams.get('watch') === 'true') {
          count('WATCH', resource);
          await watch(collection, searchParams, response);
          return;
        }
        count(searchParams.has('continue') ? 'PAGE' : 'LIST', resource);
        send(response, 200, list(collection, searchParams));
        return;
      }
      count(method, sub ?? (resource || pathname));
      if (collection !== undefined && name !== undefined && sub === undefined) {
        const index = indexOf(name, collection, resource);
        if (method === 'GET') send(response, 200, collection.object(index));
        else if (method === 'PATCH') {
          const metadataOnly = request.headers.accept?.includes('PartialObjectMetadata') ?? false;
          send(response, 200, collection.patch(index, await text(request), metadataOnly));
        } else throw new ApiError(405, 'MethodNotAllowed', `${method} ${pathname}`);
        return;
      }
      send(response, ...other(method, pathname, resource, name, await text(request), leases));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      request.resume();
      send(response, error.code, JSON.stringify(error.body));
    }
  };
}

function collectionOf(kinds: Kinds, resource: string): Collection | undefined {
  switch (resource) {
    case 'pods':
    case 'nodes':
    case 'namespaces':
    case 'daemonsets':
      return kinds[resource];
    default:
      return undefined;
  }
}

/** Names end with the object's index. The namespaces of the controller itself count as the first one. */
function indexOf(name: string, { size }: Collection, resource: string): number {
  const digits = /-(\d+)$/.exec(name)?.[1];
  const index = digits === undefined ? (resource === 'namespaces' ? 0 : -1) : Number(digits);
  if (index >= 0 && index < size) return index;
  throw new ApiError(404, 'NotFound', `${resource} "${name}" not found`, { name });
}

function list(collection: Collection, query: URLSearchParams): string {
  if (query.has('fieldSelector')) throw new ApiError(400, 'BadRequest', 'this server knows no field selectors');
  const hash = /^pod-template-hash=h(\d+)$/.exec(query.get('labelSelector') ?? '')?.[1];
  if (hash !== undefined) return collection.page(range(Number(hash) * PODS_OF_APP, PODS_OF_APP));
  const from = Number(query.get('continue') ?? 0);
  const limit = Number(query.get('limit') ?? 0) || collection.size;
  const end = Math.min(collection.size, from + limit);
  return collection.page(range(from, end - from), end < collection.size ? end : undefined);
}

function* range(from: number, count: number): Generator<number> {
  for (let index = from; index < from + count; index += 1) yield index;
}

async function watch(collection: Collection, query: URLSearchParams, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  if (query.get('sendInitialEvents') === 'true') {
    for (let index = 0; index < collection.size; index += 1) {
      if (!response.write(collection.initialEvent(index)))
        await new Promise((resolve) => response.once('drain', resolve));
    }
    response.write(collection.bookmark(true));
  }
  const from = Number(query.get('resourceVersion') ?? 0) || Number.POSITIVE_INFINITY;
  const end = collection.watch(from, (event) => response.write(event));
  if (end === undefined) {
    const { body } = new ApiError(410, 'Expired', 'too old resource version');
    response.end(`${JSON.stringify({ type: 'ERROR', object: body })}\n`);
    return;
  }
  const bookmarks = setInterval(() => response.write(collection.bookmark()), BOOKMARK_MS);
  const over = setTimeout(() => response.end(), Number(query.get('timeoutSeconds') ?? 1_800) * 1_000);
  response.once('close', () => {
    end();
    clearInterval(bookmarks);
    clearTimeout(over);
  });
}

/** Leases are kept; Events are accepted; ReplicaSets are there to be read; there are no other objects. */
function other(
  method: string,
  path: string,
  resource: string,
  name: string | undefined,
  body: string,
  leases: Map<string, string>,
): [status: number, body: string] {
  const ok = (answer: string, status = 200): [number, string] => [status, answer];
  if (path === '/version') return ok('{"major":"1","minor":"37","gitVersion":"v1.37.2"}');
  if (resource === 'events' && method === 'POST') return ok(body, 201);
  if (resource === 'leases') {
    const key = name ?? stringAt(objectAt(objectOf(body), 'metadata'), 'name') ?? '';
    if (method === 'POST' || method === 'PUT') {
      leases.set(key, body);
      return ok(body, method === 'POST' ? 201 : 200);
    }
    if (method === 'DELETE') leases.delete(key);
    else if (name === undefined) return ok(`{"metadata":{},"items":[${[...leases.values()].join()}]}`);
    const found = leases.get(key);
    if (found !== undefined) return ok(found);
  }
  if (resource === 'deployments' && name === undefined && method === 'GET') return ok('{"metadata":{},"items":[]}');
  throw new ApiError(404, 'NotFound', `${path} not found`, {});
}

function objectOf(body: string) {
  const value = parseJson(body);
  return isObject(value) ? value : {};
}

function send(response: ServerResponse, status: number, body: string): void {
  const length = Buffer.byteLength(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': length }).end(body);
}
