import { isObject, type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { jsonPatch } from '../../../test/simulator/objects/patch.ts';
import { filledIn, type Numbers, splitAtFields } from './objects.ts';

/** The texts of one kind of object. They must not change for an index. */
type Kind = {
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
  patch(index: number, patch: string, metadataOnly: boolean): string;
  object(index: number): string;
  /** The objects of these indexes as a list. `next`: the index with which the next page begins. */
  page(indexes: Iterable<number>, next?: number): string;
  /** Sends the events after a version, and those that follow, until the returned function is called; undefined: too old. */
  watch(from: number, send: (event: string) => void): (() => void) | undefined;
  /** The event that only has the present version. `initial`: it ends the events of `sendInitialEvents`. */
  bookmark(initial?: boolean): string;
  initialEvent(index: number): string;
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
  /** The texts of the kind, split: few. */
  const split = new Map<string, readonly string[]>();
  /** Texts that a patch changed. */
  const own = new Map<number, string>();
  const watchers = new Set<(event: string) => void>();
  const events: Event[] = [];

  function partsOf(index: number): readonly string[] {
    const changed = own.get(index);
    if (changed !== undefined) return splitAtFields(changed);
    const text = textOf(index);
    const parts = split.get(text) ?? splitAtFields(text);
    split.set(text, parts);
    return parts;
  }

  function item(index: number): string {
    const now = versions.get(index) ?? FIRST_VERSION;
    return filledIn(partsOf(index), { ...numbersOf(index), version: now, mm: Math.floor(now / 60) % 60, ss: now % 60 });
  }

  // The items of a list have no kind, as those of a real API server.
  const object = (index: number) => `{"kind":"${kind}","apiVersion":"${apiVersion}",${item(index).slice(1)}`;
  const eventOf = (type: string, index: number) => `{"type":"${type}","object":${object(index)}}\n`;

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
      const text = own.get(index) ?? filledIn(partsOf(index), numbersOf(index));
      const now = jsonPatch(parsed(object(index)), patch);
      const metadata = objectAt(now, 'metadata');
      const next = jsonPatch(parsed(text), withoutTests(patch));
      // As the API server does for every change of a spec.
      const generation = typeof metadata.generation === 'number' ? { generation: metadata.generation + 1 } : {};
      own.set(index, JSON.stringify({ ...next, metadata: { ...objectAt(next, 'metadata'), ...generation } }));
      happened('MODIFIED', index);
      if (!metadataOnly) return object(index);
      const part = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' };
      return JSON.stringify({ ...part, metadata: parsed(object(index)).metadata });
    },
    page(indexes, next) {
      const token = next === undefined ? '' : `,"continue":"${next}"`;
      const metadata = `{"resourceVersion":"${version}"${token}}`;
      const items = [...indexes].map(item).join();
      return `{"kind":"${kind}List","apiVersion":"${apiVersion}","metadata":${metadata},"items":[${items}]}`;
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
      return `{"type":"BOOKMARK","object":{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":${metadata}}}\n`;
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
