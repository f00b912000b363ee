import { equal, isObject, type JsonObject, object, objects, text } from '../json.ts';

/** Who writes: what `fieldManager` or the user agent says, and through which subresource. */
export interface Writer {
  readonly user: string;
  readonly manager: string;
  /** The request's field manager, if it names one. */
  readonly fieldManager?: string;
}

export const CONTROLLER_MANAGER: Writer = {
  user: 'system:kube-controller-manager',
  manager: 'kube-controller-manager',
};

/** Lists that are owned item by item; every other list (taints and tolerations too) is owned as a whole. */
const KEYS: Readonly<Record<string, string>> = { containers: 'name', initContainers: 'name', conditions: 'type' };
const SERVERS_OWN =
  /^metadata\/f:(name|namespace|uid|resourceVersion|generation|creationTimestamp|managedFields|deletion)/;

/** Every leaf of the object by its path (`spec/f:tolerations`), in the spelling of fieldsV1. */
function leaves(value: unknown, name: string, path: string, found: Map<string, unknown>): void {
  const key = KEYS[name];
  if (Array.isArray(value) && key !== undefined) {
    for (const item of objects(value)) {
      leaves(item, '', `${path}/k:${JSON.stringify({ [key]: item[key] })}`, found);
    }
  } else if (isObject(value) && Object.keys(value).length > 0) {
    for (const [field, child] of Object.entries(value)) leaves(child, field, `${path}/f:${field}`, found);
  } else if (!SERVERS_OWN.test(path.slice(3))) {
    found.set(path.slice(1), value);
  }
}

function leavesOf(item: JsonObject | undefined): Map<string, unknown> {
  const found = new Map<string, unknown>();
  if (!item) return found;
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = item;
  for (const [field, value] of Object.entries(rest)) {
    const isEmpty = isObject(value) && Object.keys(value).length === 0;
    if (!isEmpty) leaves(value, field, `/f:${field}`, found);
  }
  return found;
}

function pathsOf(fields: unknown, prefix: string, found: Set<string>): Set<string> {
  for (const [name, child] of Object.entries(object(fields))) {
    const path = prefix === '' ? name : `${prefix}/${name}`;
    if (isObject(child) && Object.keys(child).length > 0) pathsOf(child, path, found);
    else found.add(path);
  }
  return found;
}

function fieldsOf(paths: Iterable<string>): JsonObject {
  const root: JsonObject = {};
  for (const path of paths) {
    let node = root;
    for (const segment of path.split(/\/(?=f:|k:)/)) {
      const next = object(node[segment]);
      node[segment] = next;
      node = next;
    }
  }
  return root;
}

/**
 * `metadata.managedFields` after an update (KEP-555): a field whose value changed moves to its writer, a field that went
 * is nobody's. Only leaves are recorded, without the `.` entries of the real server.
 */
export function managedFields(
  previous: JsonObject | undefined,
  next: JsonObject,
  writer: Writer,
  subresource: string,
  now: string,
): JsonObject[] {
  const before = leavesOf(previous);
  const after = leavesOf(next);
  const changed = [...after].filter(([path, value]) => !before.has(path) || !equal(before.get(path), value));
  const moved = new Set(changed.map(([path]) => path));
  const gone = new Set([...before.keys()].filter((path) => !after.has(path)));
  // A writer may change the entries themselves. An empty list changes nothing.
  const given = objects(object(next.metadata).managedFields);
  const entries = given.length > 0 ? given : objects(object(previous?.metadata).managedFields);
  if (moved.size === 0 && gone.size === 0) return [...entries];
  const isWriters = (entry: JsonObject) =>
    entry.manager === writer.manager && text(entry.subresource) === subresource && entry.apiVersion === next.apiVersion;
  const own = pathsOf(entries.find(isWriters)?.fieldsV1, '', new Set());
  for (const path of gone) own.delete(path);
  for (const path of moved) own.add(path);
  const others = entries
    .filter((entry) => !isWriters(entry))
    .map((entry) => {
      const paths = [...pathsOf(entry.fieldsV1, '', new Set())];
      const kept = paths.filter((path) => !gone.has(path) && !moved.has(path));
      return kept.length === paths.length ? entry : { ...entry, fieldsV1: fieldsOf(kept) };
    })
    .filter((entry) => Object.keys(object(entry.fieldsV1)).length > 0);
  if (own.size === 0) return others;
  const entry = {
    manager: writer.manager,
    operation: 'Update',
    apiVersion: next.apiVersion,
    time: now,
    fieldsType: 'FieldsV1',
    fieldsV1: fieldsOf(own),
    ...(subresource === '' ? {} : { subresource }),
  };
  return [...others, entry];
}
