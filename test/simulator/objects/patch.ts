import { at, equal, isObject, type JsonObject, list, object } from '../json.ts';
import { badRequest, patchRejected } from './status.ts';

/** Marks a literal whose spelling is not Go's, so that it equals nothing the server holds. */
const FOREIGN = '\uE000';

/**
 * The patch's text as `test` sees it. The server compares scalars byte by byte with Go's own encoding: `300.0` is not
 * `300`, and a string with a bare `<`, `>` or `&` differs from the escaped one it holds.
 */
function asCompared(source: string): string {
  return source.replace(
    /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g,
    (literal: string, offset: number): string => {
      if (!literal.startsWith('"')) return String(Number(literal)) === literal ? literal : `"${FOREIGN}"`;
      const isKey = /^\s*:/.test(source.slice(offset + literal.length, offset + literal.length + 20));
      if (isKey || literal === goString(String(JSON.parse(literal)))) return literal;
      return JSON.stringify(FOREIGN + literal);
    },
  );
}

/** A string as Go's encoding/json writes it, HTML escapes on. */
function goString(value: string): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** RFC 6902 as the API server applies it. Throws the server's own answer; the object given is not changed. */
export function jsonPatch(current: JsonObject, source: string): JsonObject {
  let operations: unknown;
  try {
    operations = JSON.parse(source);
  } catch (error) {
    throw badRequest(`error decoding patch: ${String(error)}`);
  }
  if (!Array.isArray(operations)) throw badRequest('error decoding patch: json: cannot unmarshal object into Go value');
  const compared = list(JSON.parse(asCompared(source)));
  const root: JsonObject = { '': structuredClone(current) };
  for (const [index, operation] of operations.entries()) {
    operate(root, object(operation), at(compared[index], 'value'));
  }
  return object(root['']);
}

function operate(root: JsonObject, operation: JsonObject, compared: unknown): void {
  const { op, path, from, value = null } = operation;
  if (typeof path !== 'string') throw patchRejected();
  const source = typeof from === 'string' ? read(root, from) : undefined;
  if ((op === 'replace' || op === 'remove') && read(root, path) === undefined) throw patchRejected();
  if ((op === 'copy' || op === 'move') && source === undefined) throw patchRejected();
  if (op === 'replace' || op === 'remove') remove(root, path);
  if (op === 'move' && typeof from === 'string') remove(root, from);
  if (op === 'add' || op === 'replace') add(root, path, structuredClone(value));
  else if (op === 'copy' || op === 'move') add(root, path, structuredClone(source));
  else if (op === 'test') test(root, path, compared);
  else if (op !== 'remove') throw patchRejected();
}

/** The container that a pointer's last segment is in, or undefined. */
function resolve(root: JsonObject, path: string): { container: JsonObject | unknown[]; key: string } | undefined {
  const segments = path.split('/').map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
  let container: unknown = root;
  for (const segment of segments.slice(0, -1)) container = child(container, segment);
  const key = segments.at(-1);
  return key !== undefined && (isObject(container) || Array.isArray(container)) ? { container, key } : undefined;
}

function child(container: unknown, key: string): unknown {
  if (Array.isArray(container)) return /^\d+$/.test(key) ? container[Number(key)] : undefined;
  return at(container, key);
}

function read(root: JsonObject, path: string): unknown {
  const place = resolve(root, path);
  return place && child(place.container, place.key);
}

function test(root: JsonObject, path: string, value: unknown): void {
  const place = resolve(root, path);
  // A missing container fails even against null; a missing field in it is null.
  if (!place || !equal(child(place.container, place.key) ?? null, value ?? null)) throw patchRejected();
}

function add(root: JsonObject, path: string, value: unknown): void {
  const place = resolve(root, path);
  if (!place) throw patchRejected();
  const { container, key } = place;
  if (!Array.isArray(container)) {
    container[key] = value;
    return;
  }
  const index = key === '-' ? container.length : Number(key);
  if (!(key === '-' || /^\d+$/.test(key)) || index > container.length) throw patchRejected();
  container.splice(index, 0, value);
}

function remove(root: JsonObject, path: string): void {
  const place = resolve(root, path);
  if (!place || child(place.container, place.key) === undefined) throw patchRejected();
  if (Array.isArray(place.container)) place.container.splice(Number(place.key), 1);
  else delete place.container[place.key];
}

/** RFC 7396. */
export function mergePatch(current: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return structuredClone(patch);
  const result: JsonObject = { ...object(current) };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = mergePatch(result[name], value);
  }
  return result;
}
