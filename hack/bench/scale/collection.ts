import { isObject, type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { jsonPatch } from '../../../test/simulator/objects/patch.ts';
import { FIELDS, type Numbers } from './objects.ts';
import { createStamp, fillIn, type Stamp } from './stamp.ts';

/** The texts of one kind of object. They must not change for an index. */
export type Kind = {
  /** As in a bookmark. */
  readonly kind: string;
  readonly apiVersion: string;
  readonly numbersOf: (index: number) => Numbers;
  /** The text of an object with the fields of objects.ts, without kind and apiVersion. Few different texts are needed. */
  readonly textOf: (index: number) => string;
};

type Event = { readonly version: number; readonly index: number; readonly type: 'ADDED' | 'MODIFIED' };

/** The objects of a kind. Only what differs from the text of an object is kept. */
export type Collection = {
  readonly size: number;
  /** Objects that were changed by a patch. */
  readonly patched: number;
  /** Adds objects at the end, and sends their events. */
  add(count: number): void;
  /** Changes the status of an object, and sends the event. */
  touch(index: number): void;
  /** Applies a JSON Patch; throws the API server's refusal. Returns the object, or with `metadataOnly` its metadata. */
  patch(index: number, patch: string, metadataOnly: boolean): Buffer;
  object(index: number): Buffer;
  /** The objects of these indexes as a list. `next`: the index with which the next page begins. */
  page(indexes: Iterable<number>, next?: number): Buffer;
  /** Sends the events after a version, and those that follow, until the returned function is called; undefined: too old. */
  watch(from: number, send: (event: Buffer) => void): (() => void) | undefined;
  /** The event that only has the present version. `initial`: it ends the events of `sendInitialEvents`. */
  bookmark(initial?: boolean): Buffer;
  initialEvent(index: number): Buffer;
};

/** The version of a cluster before anything happens; a decimal number of ten digits, as all that follow. */
const FIRST_VERSION = 1_000_000_000;
/** The events that a watch can still begin with. */
const KEPT_EVENTS = 10_000;

let version = FIRST_VERSION;

/** Creates a collection with this many objects. All collections of a process share one version. */
export function createCollection({ kind, apiVersion, numbersOf, textOf }: Kind, count: number): Collection {
  let size = count;
  const versions = new Map<number, number>();
  const stamps = new Map<string, Stamp>();
  /** Objects whose text a patch changed. */
  const own = new Map<number, { readonly text: string; readonly stamp: Stamp }>();
  const watchers = new Set<(event: Buffer) => void>();
  const events: Event[] = [];

  function stampOf(index: number): Stamp {
    const changed = own.get(index);
    if (changed !== undefined) return changed.stamp;
    const text = textOf(index);
    const stamp = stamps.get(text) ?? createStamp(text, FIELDS);
    stamps.set(text, stamp);
    return stamp;
  }

  function valuesOf(index: number): number[] {
    const now = versions.get(index) ?? FIRST_VERSION;
    const { index: own, app, space, node, image } = numbersOf(index);
    return [now, Math.floor(now / 60) % 60, now % 60, own, app, space, node, image];
  }

  // The items of a list have no kind, as those of a real API server.
  const head = `{"kind":"${kind}","apiVersion":"${apiVersion}",`;
  const rest = (index: number) => stampOf(index).make(valuesOf(index)).subarray(1);
  const object = (index: number) => Buffer.concat([Buffer.from(head), rest(index)]);
  const eventOf = (type: string, index: number) =>
    Buffer.concat([Buffer.from(`{"type":"${type}","object":${head}`), rest(index), Buffer.from('}\n')]);

  function happened(type: Event['type'], index: number): void {
    version += 1;
    versions.set(index, version);
    events.push({ version, index, type });
    if (events.length > 2 * KEPT_EVENTS) events.splice(0, KEPT_EVENTS);
    if (watchers.size === 0) return;
    const event = eventOf(type, index);
    for (const send of watchers) send(event);
  }

  return {
    get size() {
      return size;
    },
    get patched() {
      return own.size;
    },
    object,
    add(more) {
      for (let index = size; index < size + more; index += 1) {
        happened('ADDED', index);
      }
      size += more;
    },
    touch: (index) => happened('MODIFIED', index),
    patch(index, patch, metadataOnly) {
      const text = own.get(index)?.text ?? fillIn(textOf(index), FIELDS, numbersOf(index));
      const now = jsonPatch(parsed(object(index).toString()), patch);
      const metadata = objectAt(now, 'metadata');
      const next = jsonPatch(parsed(text), withoutTests(patch));
      // As the API server does for every change of a spec.
      const generation = typeof metadata.generation === 'number' ? { generation: metadata.generation + 1 } : {};
      const changed = JSON.stringify({ ...next, metadata: { ...objectAt(next, 'metadata'), ...generation } });
      own.set(index, { text: changed, stamp: createStamp(changed, FIELDS) });
      happened('MODIFIED', index);
      if (!metadataOnly) return object(index);
      const part = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' };
      return Buffer.from(JSON.stringify({ ...part, metadata: parsed(object(index).toString()).metadata }));
    },
    page(indexes, next) {
      const token = next === undefined ? '' : `,"continue":"${next}"`;
      const listHead = `{"kind":"${kind}List","apiVersion":"${apiVersion}","metadata":{"resourceVersion":"${version}"${token}},"items":[`;
      const items = [...indexes];
      const bytes = items.reduce((sum, index) => sum + stampOf(index).size + 1, listHead.length);
      const page = Buffer.allocUnsafe(items.length === 0 ? bytes + 2 : bytes + 1);
      let at = page.write(listHead, 'latin1');
      for (const [place, index] of items.entries()) {
        if (place > 0) at += page.write(',', at);
        at = stampOf(index).write(page, at, valuesOf(index));
      }
      page.write(']}', at);
      return page;
    },
    watch(from, send) {
      if (from < (events[0]?.version ?? FIRST_VERSION) - 1 && events.length > KEPT_EVENTS) return undefined;
      for (const event of events) if (event.version > from) send(eventOf(event.type, event.index));
      watchers.add(send);
      return () => watchers.delete(send);
    },
    bookmark(initial = false) {
      const annotations = initial ? ',"annotations":{"k8s.io/initial-events-end":"true"}' : '';
      const metadata = `{"resourceVersion":"${version}","creationTimestamp":null${annotations}}`;
      return Buffer.from(
        `{"type":"BOOKMARK","object":{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":${metadata}}}\n`,
      );
    },
    initialEvent: (index) => eventOf('ADDED', index),
  };
}

function parsed(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  return isObject(value) ? value : {};
}

/** The tests were made against the real object; the version in the text is still a field. */
function withoutTests(patch: string): string {
  const operations: unknown = JSON.parse(patch);
  if (!Array.isArray(operations)) return patch;
  return JSON.stringify(operations.filter((operation) => !isObject(operation) || operation.op !== 'test'));
}
