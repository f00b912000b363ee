import type { ServerResponse } from 'node:http';
import { assign, type JsonObject } from '../json.ts';
import type { Resource } from '../objects/resources.ts';
import type { Predicate } from '../objects/selectors.ts';
import { type ApiError, expired } from '../objects/status.ts';
import { jsonOf, namespaceOf, type Store, type StoreEvent } from '../objects/store.ts';

export interface WatchRequest {
  readonly resource: Resource;
  readonly namespace: string;
  readonly matches: Predicate;
  /** '' and '0' begin with the present objects. */
  readonly resourceVersion: string;
  readonly bookmarks: boolean;
  readonly timeoutSeconds: number | undefined;
}

/** A bookmark comes this long before a watch ends, as on the real server. */
const LAST_BOOKMARK_MS = 2_000;

/** The open watches. They end with their timeouts, with `closeAll`, or with the client. */
export function createWatches(store: Store, bookmarkPeriodMs: number) {
  const open = new Set<{ end(): void; fail(error: ApiError): void }>();
  let stalled = false;

  function start(request: WatchRequest, response: ServerResponse): void {
    const { resource, resourceVersion } = request;
    const fromNow = resourceVersion === '' || resourceVersion === '0';
    const replay = fromNow ? [] : store.since(Number(resourceVersion));
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-cache, private' });
    response.flushHeaders();
    const send = (type: string, json: string) => {
      if (!stalled) response.write(`{"type":"${type}","object":${json}}\n`);
    };
    let told = fromNow ? store.version() : Number(resourceVersion);
    // The real server leaves out a bookmark that says no more than the watch has said.
    const bookmark = () => {
      if (store.version() > told) send('BOOKMARK', bookmarkOf(resource, store.version()));
      told = store.version();
    };
    const timers: NodeJS.Timeout[] = [];
    const finish = () => {
      unsubscribe();
      open.delete(watch);
      for (const timer of timers) clearTimeout(timer);
    };
    const watch = {
      end: () => {
        finish();
        response.end();
      },
      fail: (error: ApiError) => {
        send('ERROR', JSON.stringify(error.body));
        watch.end();
      },
    };
    const unsubscribe = store.subscribe((event) => forward(request, event, send));
    open.add(watch);
    response.on('close', finish);
    if (!replay) {
      watch.fail(expired(`too old resource version: ${resourceVersion} (${store.oldest()})`));
      return;
    }
    for (const event of replay) forward(request, event, send);
    if (fromNow)
      for (const item of store.list(resource, request.namespace))
        if (request.matches(item)) send('ADDED', jsonOf(item));
    const timeoutMs = (request.timeoutSeconds ?? 1800) * 1000;
    timers.push(setTimeout(watch.end, timeoutMs));
    if (!request.bookmarks) return;
    timers.push(setInterval(bookmark, bookmarkPeriodMs));
    if (timeoutMs > LAST_BOOKMARK_MS) timers.push(setTimeout(bookmark, timeoutMs - LAST_BOOKMARK_MS));
  }

  return {
    start,
    count: () => open.size,
    /** Ends every watch as if its time were over. */
    closeAll() {
      for (const watch of [...open]) watch.end();
    },
    /** Sends nothing over any watch, open or new, until `false`. The watches miss what happens meanwhile. */
    stall(value: boolean) {
      stalled = value;
    },
    /** Ends every watch with a 410 in its stream. */
    expireAll() {
      for (const watch of [...open]) watch.fail(expired('The resourceVersion for the provided watch is too old.'));
    },
  };
}

export type Watches = ReturnType<typeof createWatches>;

function bookmarkOf({ kind, apiVersion }: Resource, version: number): string {
  return JSON.stringify({ kind, apiVersion, metadata: { resourceVersion: String(version), creationTimestamp: null } });
}

/** An object that begins to match is added, one that no longer does is deleted: with its last state, new version. */
function forward(request: WatchRequest, event: StoreEvent, send: (type: string, json: string) => void): void {
  const { object, previous } = event;
  if (event.resource !== request.resource) return;
  if (request.namespace !== '' && namespaceOf(object) !== request.namespace) return;
  const before = previous !== undefined && request.matches(previous);
  const after = event.type !== 'DELETED' && request.matches(object);
  if (after) send(before ? 'MODIFIED' : 'ADDED', jsonOf(object));
  else if (before) send('DELETED', jsonOf(event.type === 'DELETED' ? object : withVersion(previous, event.version)));
}

const withVersion = (item: JsonObject, version: number) =>
  assign(item, ['metadata', 'resourceVersion'], String(version));
