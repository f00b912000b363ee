import { onAbort } from '../../kit/abort.ts';
import type { Clock } from '../../kit/clock.ts';
import { isObject, objectAt, parseJson, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../api-client.ts';
import { ApiError, ConnectionError, isExpired, isFromTheFuture } from '../errors.ts';
import { withQuery } from '../read.ts';

/** How a watch ended: whether anything arrived, and the failure if it ended before its time. */
type Ended = { readonly heard: boolean; readonly failure: WatchFailure | undefined };
type WatchFailure = {
  readonly error: Error;
  /**
   * `version`: the server no longer knows the version. `refused`: the server did not open the watch. `away`: it gave no answer at all.
   * `silent`: the watch was open, and nothing arrived over it for too long. `broken`: the connection or the watch itself failed.
   */
  readonly cause: 'version' | 'refused' | 'away' | 'silent' | 'broken';
};

type WatchOnceOptions = {
  readonly client: ApiClient;
  readonly path: string;
  /** Has the version to watch from, and takes the events. If it throws, the watch is over. */
  readonly collection: { version(): string; take(line: Buffer): void };
  /** After this time the server ends the watch. */
  readonly seconds: number;
  /** Milliseconds without a byte, bookmarks included, after which the watch counts as dead. */
  readonly idleMs: number;
  readonly clock: Clock;
  /** Called with the bytes of each event. */
  readonly onHeard?: ((bytes: number) => void) | undefined;
  readonly onFirst?: () => void;
  /** Called when the server has opened the watch; what it returns is called when the watch is over. */
  readonly onOpen: () => (() => void) | undefined;
};

/** Watches a collection until the watch ends, or the signal aborts. Never throws. */
export async function watchOnce(options: WatchOnceOptions, signal: AbortSignal): Promise<Ended> {
  const { client, path, collection, seconds, idleMs, clock, onOpen, onHeard, onFirst } = options;
  const query = `watch=true&allowWatchBookmarks=true&timeoutSeconds=${seconds}&resourceVersion=${collection.version()}`;
  const over = new AbortController();
  const forget = onAbort(signal, () => over.abort(signal.reason));
  let [isSilent, isOpen, heard] = [false, false, false];
  let heardAt = clock.monotonic();
  // The timer is not set again at each event. When it ends, it is set for the rest of the time since the last event.
  const lookLater = (ms: number): (() => void) =>
    clock.after(ms, () => {
      const leftMs = heardAt + idleMs - clock.monotonic();
      if (leftMs > 0) {
        cancelIdle = lookLater(leftMs);
        return;
      }
      isSilent = true;
      over.abort(new Error(`silent for ${idleMs / 1000} s`));
    });
  let cancelIdle = lookLater(idleMs);
  let closed: (() => void) | undefined;
  try {
    await client.watch(withQuery(path, query), {
      signal: over.signal,
      onOpen() {
        isOpen = true;
        closed = onOpen();
      },
      onPiece: splitLines((line) => {
        heardAt = clock.monotonic();
        collection.take(line);
        onHeard?.(line.length);
        if (!heard) onFirst?.();
        heard = true;
      }),
    });
    return { heard, failure: undefined };
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    if (isSilent) return { heard, failure: { error: new Error('silent'), cause: isOpen ? 'silent' : 'broken' } };
    if (isExpired(error) || isFromTheFuture(error)) return { heard, failure: { error, cause: 'version' } };
    const unopened = error instanceof ApiError ? 'refused' : error instanceof ConnectionError ? 'away' : 'broken';
    return { heard, failure: { error, cause: isOpen ? 'broken' : unopened } };
  } finally {
    cancelIdle();
    closed?.();
    forget();
    over.abort();
  }
}

/** Returns a function that takes bytes as they arrive and calls `onLine` for each line, without its line feed. */
function splitLines(onLine: (line: Buffer) => void): (piece: Buffer) => void {
  let parts: Buffer[] = [];
  return (piece) => {
    let start = 0;
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, start)) {
      const tail = piece.subarray(start, end);
      const line = parts.length === 0 ? tail : Buffer.concat([...parts, tail]);
      parts = [];
      start = end + 1;
      if (line.length > 0) onLine(line);
    }
    if (start < piece.length) parts.push(start === 0 ? piece : piece.subarray(start));
  };
}

/**
 * Reads an event of a watch. `version`: that of its object.
 *
 * @throws ApiError if the server says that the watch is over
 */
export function readEvent(line: Buffer, path: string) {
  const event = parseJson(withoutManagedFields(line));
  if (!isObject(event)) throw new Error('an event of the watch is not JSON');
  const object = objectAt(event, 'object');
  if (event.type === 'ERROR') throw new ApiError(Number(object.code ?? 500), object, `watch ${path.split('?')[0]}`);
  return { type: event.type, object, version: stringAt(objectAt(object, 'metadata'), 'resourceVersion') };
}

const METADATA = Buffer.from('"metadata":{');
const MANAGED_FIELDS = Buffer.from(',"managedFields":[');
const SPEC = Buffer.from(']},"spec":{');
const OURS = Buffer.from('archaware');
/** The part before `metadata` has the type of the event, the kind and the API version. */
const LONGEST_HEAD = 160;

/**
 * Returns the JSON of an object, or of an event, without `managedFields`, which often are a third of it. They stay if archaware's
 * name is in them or before them: then they say what archaware wrote. They stay, too, if the parts do not come in the order in which
 * the API server writes them (`metadata` with `managedFields` at its end, then `spec`). In JSON, a quote within a string is escaped,
 * so none of the searched bytes can be part of a string.
 */
export function withoutManagedFields(json: Buffer): string {
  const metadata = json.indexOf(METADATA);
  const begin = metadata < 0 || metadata > LONGEST_HEAD ? -1 : json.indexOf(MANAGED_FIELDS, metadata);
  const spec = begin < 0 ? -1 : json.indexOf(SPEC, begin);
  const ours = json.indexOf(OURS);
  if (spec < 0 || (ours >= 0 && ours < spec)) return json.toString('utf8');
  return json.toString('utf8', 0, begin) + json.toString('utf8', spec + 1);
}
