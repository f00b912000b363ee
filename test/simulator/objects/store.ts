import { at, object as fields, isObject, type JsonObject, text } from '../json.ts';
import type { Resource } from './resources.ts';

export interface StoreEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: Resource;
  readonly object: JsonObject;
  readonly previous: JsonObject | undefined;
  readonly version: number;
}

export type Store = ReturnType<typeof createStore>;

export const nameOf = (item: JsonObject) => text(at(item, 'metadata', 'name'));
export const namespaceOf = (item: JsonObject) => text(at(item, 'metadata', 'namespace'));
export const uidOf = (item: JsonObject) => text(at(item, 'metadata', 'uid'));
/** `namespace/name`, or `/name`: the order of lists, as in etcd. */
export const keyOf = (item: JsonObject) => `${namespaceOf(item)}/${nameOf(item)}`;

const texts = new WeakMap<JsonObject, string>();

/** The object's JSON, made once: stored objects are never changed in place. */
export function jsonOf(item: JsonObject): string {
  let json = texts.get(item);
  if (json === undefined) {
    json = JSON.stringify(inGoOrder(item));
    texts.set(item, json);
  }
  return json;
}

/** The order in which the real API server writes the fields of an object, and those of `metadata`: that of Go's types. */
const OBJECT = ['kind', 'apiVersion', 'metadata', 'spec', 'status'];
const METADATA = [
  ...['name', 'generateName', 'namespace', 'selfLink', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'],
  ...['deletionTimestamp', 'deletionGracePeriodSeconds', 'labels', 'annotations', 'ownerReferences', 'finalizers'],
  'managedFields',
];

function inGoOrder(item: JsonObject): JsonObject {
  const { metadata, items } = item;
  return ordered(OBJECT, {
    ...item,
    ...(isObject(metadata) ? { metadata: ordered(METADATA, metadata) } : {}),
    ...(Array.isArray(items) ? { items: items.map((each) => (isObject(each) ? inGoOrder(each) : each)) } : {}),
  });
}

/** Returns an object with these fields first, then its others. */
function ordered(first: readonly string[], item: JsonObject): JsonObject {
  const known = first.filter((field) => Object.hasOwn(item, field)).map((field) => [field, item[field]] as const);
  return { ...Object.fromEntries(known), ...item };
}

/**
 * Objects by resource and key, one counter of versions over all, and the history that watches replay. It knows no rule
 * of any kind.
 */
export function createStore(historyLimit: number) {
  const tables = new Map<string, Map<string, JsonObject>>();
  const order = new Map<string, string[]>();
  const listeners = new Set<(event: StoreEvent) => void>();
  let history: StoreEvent[] = [];
  let version = 100;
  let oldest = 100;
  let compacted = 100;

  const table = (resource: Resource) => {
    let found = tables.get(resource.plural);
    if (!found) {
      found = new Map();
      tables.set(resource.plural, found);
    }
    return found;
  };
  const keys = (resource: Resource) => {
    let sorted = order.get(resource.plural);
    if (!sorted) {
      sorted = [...table(resource).keys()].sort();
      order.set(resource.plural, sorted);
    }
    return sorted;
  };
  const record = (type: StoreEvent['type'], resource: Resource, object: JsonObject, previous?: JsonObject) => {
    const event = { type, resource, object, previous, version };
    history.push(event);
    if (history.length > historyLimit * 2) {
      const dropped = history.splice(0, history.length - historyLimit);
      oldest = dropped.at(-1)?.version ?? oldest;
    }
    for (const listener of listeners) listener(event);
  };
  const stamped = (object: JsonObject): JsonObject => {
    version += 1;
    const metadata = { ...fields(object.metadata), resourceVersion: String(version) };
    return { kind: object.kind, apiVersion: object.apiVersion, ...object, metadata };
  };

  return {
    version: () => version,
    get: (resource: Resource, namespace: string, name: string) => table(resource).get(`${namespace}/${name}`),

    /** In the order of their keys; of one namespace, or of all (''). */
    list(resource: Resource, namespace = ''): JsonObject[] {
      const items = table(resource);
      const prefix = namespace === '' ? '' : `${namespace}/`;
      return keys(resource).flatMap((key) => {
        const item = key.startsWith(prefix) ? items.get(key) : undefined;
        return item ? [item] : [];
      });
    },

    /** Stores the object under a new version and notifies every watcher. Returns what is stored. */
    put(resource: Resource, object: JsonObject): JsonObject {
      const next = stamped(object);
      const key = keyOf(next);
      const previous = table(resource).get(key);
      if (!previous) order.delete(resource.plural);
      table(resource).set(key, next);
      record(previous ? 'MODIFIED' : 'ADDED', resource, next, previous);
      return next;
    },

    remove(resource: Resource, object: JsonObject): JsonObject {
      const last = stamped(object);
      table(resource).delete(keyOf(last));
      order.delete(resource.plural);
      record('DELETED', resource, last, object);
      return last;
    },

    /** Returns the events after the version; undefined if the history no longer has them. */
    since(after: number): readonly StoreEvent[] | undefined {
      if (after < oldest) return undefined;
      return history.slice(firstAfter(history, after));
    },
    /** Watches can begin here or later. */
    oldest: () => oldest,
    /** Pages of a list of this version or later can go on. */
    compacted: () => compacted,
    /** As after a restart of the API server: its watch cache begins again. */
    forgetHistory() {
      history = [];
      oldest = version;
    },
    /** As a compaction of etcd: older versions are gone for lists too. */
    compact() {
      this.forgetHistory();
      compacted = version;
    },
    subscribe(listener: (event: StoreEvent) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The index of the first event after the version: versions only grow. */
function firstAfter(events: readonly StoreEvent[], version: number): number {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const event = events[middle];
    if (event && event.version <= version) low = middle + 1;
    else high = middle;
  }
  return low;
}
