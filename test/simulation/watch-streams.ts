import type { ApiClient } from '../../src/kube/api-client.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import { at, text } from '../simulator/json.ts';
import { jsonOf, nameOf, type Store, type StoreEvent } from '../simulator/objects/store.ts';
import { watchOver } from '../support/watch-over.ts';
import type { World } from './world.ts';

/** The watches of the model: each event waits in the world until the history lets it arrive. */
export type WatchStreams = {
  watchFor(owner: string): ApiClient['watch'];
  /** Breaks every watch, or those of one process. */
  breakAll(owner?: string): void;
  /** The watches of a process are silent from now on, and do not end. */
  silence(owner: string): void;
};

type Stream = {
  readonly owner: string;
  readonly plural: string;
  queue: { readonly line: string; readonly title: string }[];
  isPlanned: boolean;
  isDead: boolean;
  readonly channel: Channel;
};
type Channel = { push(piece: string): void; end(error?: unknown): void; readonly chunks: AsyncIterable<Buffer> };

const BOOKMARK_MS = 60_000;

/** Creates the watches over a store. */
export function createWatchStreams(world: World, store: Store): WatchStreams {
  const streams = new Set<Stream>();

  store.subscribe((event) => {
    for (const stream of streams) if (stream.plural === event.resource.plural) send(stream, event);
  });

  function send(stream: Stream, { type, object }: StoreEvent): void {
    const title = `${type} ${text(object.kind)} ${nameOf(object)} (${text(at(object, 'metadata', 'resourceVersion'))})`;
    enqueue(stream, `{"type":"${type}","object":${jsonOf(object)}}`, title);
  }

  function enqueue(stream: Stream, line: string, title: string): void {
    if (stream.isDead) return;
    stream.queue.push({ line, title });
    planNext(stream);
  }

  /** Sends bookmarks, as the real server does about once a minute: a watch without events is not silent. */
  function bookmark(stream: Stream): void {
    world.clockFor(stream.owner).after(BOOKMARK_MS, () => {
      if (!streams.has(stream) || stream.isDead) return;
      const metadata = `{"resourceVersion":"${store.version()}","creationTimestamp":null}`;
      const line = `{"type":"BOOKMARK","object":{"kind":"Bookmark","metadata":${metadata}}}`;
      if (world.isCalmFor(stream.owner) && stream.queue.length === 0) stream.channel.push(`${line}\n`);
      else enqueue(stream, line, 'BOOKMARK');
      bookmark(stream);
    });
  }

  function planNext(stream: Stream): void {
    const [next] = stream.queue;
    if (stream.isPlanned || next === undefined) return;
    const { line, title } = next;
    stream.isPlanned = true;
    const go = () => {
      stream.isPlanned = false;
      stream.queue.shift();
      if (!streams.has(stream) || stream.isDead) return;
      deliver(stream, line);
      planNext(stream);
    };
    world.add({
      owner: stream.owner,
      what: `${stream.owner} sees ${title}`,
      isEvent: true,
      run: go,
      repeat: () => streams.has(stream) && deliver(stream, line),
      lose() {
        streams.delete(stream);
        stream.channel.end(new ConnectionError('the watch broke'));
      },
    });
  }

  /** An event arrives in one piece or in two. */
  function deliver({ channel }: Stream, line: string): void {
    const end = Math.floor(world.random() * 2 * line.length);
    if (end > 0 && end < line.length) channel.push(line.slice(0, end));
    channel.push(`${line.slice(end < line.length ? end : 0)}\n`);
  }

  function open(owner: string, path: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const { pathname, searchParams } = new URL(path, 'http://localhost');
    const plural = pathname.split('/').at(-1) ?? '';
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      world.add({
        owner,
        what: `${owner} watch ${plural}`,
        run() {
          if (signal.aborted) return;
          const channel = createChannel();
          const since = store.since(Number(searchParams.get('resourceVersion') ?? 0));
          const opened: Stream = { owner, plural, queue: [], isPlanned: false, isDead: false, channel };
          const end = () => {
            streams.delete(opened);
            channel.end(signal.reason);
          };
          signal.addEventListener('abort', end, { once: true });
          resolve(channel.chunks);
          if (since === undefined) {
            const status = '{"kind":"Status","code":410,"reason":"Expired","message":"too old"}';
            channel.push(`{"type":"ERROR","object":${status}}\n`);
            channel.end();
            return;
          }
          streams.add(opened);
          for (const event of since) if (event.resource.plural === plural) send(opened, event);
          bookmark(opened);
        },
        lose: () => reject(new ConnectionError(`watch ${plural}: the connection broke`)),
        refuse: (status) =>
          reject(new ApiError(status, { message: 'refused' }, `watch ${plural}`, status === 429 ? 1000 : undefined)),
      });
    });
  }

  return {
    watchFor: (owner) => watchOver((path, signal) => open(owner, path, signal)),
    breakAll(owner) {
      for (const stream of streams) {
        if (owner !== undefined && stream.owner !== owner) continue;
        streams.delete(stream);
        stream.channel.end(new ConnectionError('the watch broke'));
      }
    },
    silence(owner) {
      for (const stream of streams) if (stream.owner === owner) stream.isDead = true;
    },
  };
}

function createChannel(): Channel {
  const buffers: Buffer[] = [];
  let ended = false;
  let failure: unknown;
  let wake = () => {};
  return {
    push(piece) {
      buffers.push(Buffer.from(piece));
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
