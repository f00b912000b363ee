import { isObject, type JsonObject, listAt, objectAt, parseJson } from '../../kit/json.ts';
import type { ApiClient, BodyReader } from '../api-client.ts';
import { ConnectionError } from '../errors.ts';

/** Takes a list as it arrives. */
export type ListReceiver = {
  /** Takes the metadata of the list (`resourceVersion`, `continue`). Called once for each answer, before its first item. */
  readonly onMetadata: (metadata: JsonObject) => void;
  readonly onItem: (item: JsonObject) => void;
};

export type ItemReaderOptions = ListReceiver & {
  /** Makes the text to parse from the bytes of an item. */
  readonly textOf: (item: Buffer) => string;
  /** The request in words, for the error. */
  readonly title: string;
};

const ITEMS = Buffer.from('"items":[');
/** How the items of a list follow each other: in a list they have no kind, so each begins with its metadata. */
const NEXT = Buffer.from('},{"metadata":{');
/** The part before the items has the kind, the version and the metadata. */
const LONGEST_HEAD = 16_384;

/**
 * Creates a reader that parses each item as it arrives, so that a page of 500 pods is never in memory as a whole: neither its
 * bytes nor its text nor its objects. A list that is not written as the API server writes it is parsed as a whole at its end.
 */
export function createItemReader({ onMetadata, onItem, textOf, title }: ItemReaderOptions): BodyReader {
  let rest: Buffer = Buffer.alloc(0);
  /** What arrived after `rest`. It is joined only when an item ends in it: to join a large item at each piece copies it a hundred times. */
  let more: Buffer[] = [];
  /** Where to go on with the search in `rest`. */
  let searched = 0;
  let state: 'head' | 'items' | 'whole' = 'head';

  function readHead(): void {
    const at = rest.indexOf(ITEMS);
    const head = at < 0 ? undefined : parseJson(`${rest.toString('utf8', 0, at + ITEMS.length)}]}`);
    if (isObject(head) && isObject(head.metadata)) {
      state = 'items';
      rest = rest.subarray(at + ITEMS.length);
      onMetadata(head.metadata);
    } else if (at >= 0 || rest.length > LONGEST_HEAD) state = 'whole';
  }

  function readItems(): void {
    let from = 0;
    for (let at = rest.indexOf(NEXT, searched); at >= 0; at = rest.indexOf(NEXT, searched)) {
      searched = at + 1;
      // An object ends at one brace only: if these bytes are within an item, the text is no JSON, and the item goes on.
      const item = parseJson(textOf(rest.subarray(from, at + 1)));
      if (!isObject(item)) continue;
      from = at + 2;
      onItem(item);
    }
    rest = rest.subarray(from);
    searched = Math.max(0, rest.length - NEXT.length);
  }

  /** Whether the end of an item may be in this piece, or in it and the end of the one before. */
  function mayEndIn(piece: Buffer): boolean {
    if (piece.includes(NEXT)) return true;
    const before = (more.at(-1) ?? rest).subarray(-NEXT.length);
    // Two short pieces may have three parts of it. That is rare.
    if (before.length < NEXT.length || piece.length < NEXT.length) return true;
    return Buffer.concat([before, piece.subarray(0, NEXT.length)]).includes(NEXT);
  }

  function join(): void {
    if (more.length > 0) rest = Buffer.concat([rest, ...more]);
    more = [];
  }

  return {
    take(piece) {
      const isWithin = state === 'whole' || (state === 'items' && rest.length > 0 && !mayEndIn(piece));
      more.push(piece);
      if (isWithin) return;
      join();
      if (state === 'head') readHead();
      if (state === 'items') readItems();
    },
    end() {
      join();
      if (state === 'items') {
        const last = rest.toString('utf8').trimEnd();
        const items = last.endsWith(']}') ? parseJson(`[${last.slice(0, -1)}`) : undefined;
        if (!Array.isArray(items)) throw new ConnectionError(`${title}: the answer is not a list`);
        for (const item of items) if (isObject(item)) onItem(item);
        return;
      }
      const list = parseJson(rest.toString('utf8'));
      if (!isObject(list)) throw new ConnectionError(`${title}: the answer is not a list`);
      onMetadata(objectAt(list, 'metadata'));
      for (const item of listAt(list, 'items') ?? []) onItem(item);
    },
  };
}

export type ReadListOptions = {
  readonly signal: AbortSignal;
  /** Makes the text to parse from the bytes of an item; default: all of it. */
  readonly textOf?: ItemReaderOptions['textOf'];
  /** As for {@link ApiClient.request}. */
  readonly completeMs?: number;
};

/**
 * Requests a list and reads its items as they arrive. If the client sends the request again, because the answer broke off, a new
 * reader begins with `onMetadata`: what came before it does not count. Throws what the client throws.
 */
export async function readList(
  client: Pick<ApiClient, 'request'>,
  path: string,
  receiver: ListReceiver,
  { textOf = (item) => item.toString('utf8'), ...options }: ReadListOptions,
): Promise<void> {
  const reader = () => createItemReader({ ...receiver, textOf, title: `list ${path.split('?')[0]}` });
  const whole = await client.request('list', path, { ...options, reader });
  if (whole === undefined) return;
  // A client that does not give pieces gives the whole list.
  const { take, end } = reader();
  take(Buffer.from(JSON.stringify(whole)));
  end();
}
