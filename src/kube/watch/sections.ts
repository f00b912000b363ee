import { hash } from 'node:crypto';
import { isObject, type JsonObject, objectAt, parseJson, stringAt } from '../../kit/json.ts';
import { ApiError } from '../errors.ts';

/**
 * An event of a watch, cut into the parts that the API server writes one after the other. Each part is parsed only if somebody
 * needs it: half of a pod is `managedFields`, and most events change nothing but the status.
 */
export type Sections = {
  readonly name: string;
  /** Empty for an object without one. */
  readonly namespace: string;
  readonly resourceVersion: string;
  metadata(): JsonObject | undefined;
  spec(): JsonObject | undefined;
  status(): JsonObject | undefined;
  /** Whether the JSON of `spec` has these bytes. */
  specHas(bytes: string): boolean;
  /** Whether the JSON of `status` has these bytes. */
  statusHas(bytes: string): boolean;
  /** Two events have the same digest only if `metadata` and `spec` are the same, but for the version and `managedFields`. */
  digest(): string;
};

const METADATA = Buffer.from('"metadata":{');
const MANAGED_FIELDS = Buffer.from(',"managedFields":[');
const SPEC = Buffer.from(']},"spec":{');
const STATUS = Buffer.from('},"status":{');
/** The part before `metadata` has the type of the event, the kind and the API version. */
const LONGEST_HEAD = 160;

/** Where the parts of an object begin and end in its bytes. `metadata` ends before `managedFields`. */
type Places = { readonly metadata: number; readonly managedFields: number; readonly managedFieldsEnd: number };

/**
 * Finds the parts of an object in its JSON. Undefined if they do not come in the order in which the API server writes them
 * (`metadata` with `managedFields` at its end, then `spec`). In JSON, a quote within a string is escaped, so none of the searched
 * bytes can be part of a string.
 */
function placesOf(json: Buffer, from: number): Places | undefined {
  const metadata = json.indexOf(METADATA, from);
  if (metadata < 0 || metadata > from + LONGEST_HEAD) return undefined;
  const managedFields = json.indexOf(MANAGED_FIELDS, metadata);
  if (managedFields < 0) return undefined;
  const spec = json.indexOf(SPEC, managedFields);
  if (spec < 0) return undefined;
  return { metadata: metadata + METADATA.length - 1, managedFields, managedFieldsEnd: spec + 1 };
}

/** How `metadata` begins. None of these texts can have a character that JSON escapes. */
const BEGIN =
  /^\{"name":"([^"\\]*)",(?:"generateName":"[^"\\]*",)?(?:"namespace":"([^"\\]*)",)?"uid":"[^"\\]*","resourceVersion":"([^"\\]*)"/;
/** Two names of at most 253 characters, a namespace of 63, a uid and a version. */
const LONGEST_BEGIN = 800;

/** Cuts the line of a watch event; undefined if it must be parsed as a whole. */
export function sectionsOf(line: Buffer): Sections | undefined {
  const places = placesOf(line, 0);
  if (places === undefined) return undefined;
  const { metadata, managedFields, managedFieldsEnd } = places;
  const begin = BEGIN.exec(line.toString('latin1', metadata, Math.min(metadata + LONGEST_BEGIN, managedFields)));
  if (begin === null) return undefined;
  const spec = managedFieldsEnd + SPEC.length - 2;
  const status = line.indexOf(STATUS, spec);
  // The line ends with the status, the object and the event.
  if (status < 0 || line.length < status + STATUS.length + 2) return undefined;
  const [{ length }, name = '', namespace = '', { length: digits } = ''] = begin;
  const versionEnd = metadata + length - 1;
  const version = versionEnd - digits;
  return {
    name,
    namespace,
    // Read from the bytes: a part of a text would keep all of it in memory.
    resourceVersion: line.toString('latin1', version, versionEnd),
    metadata: () => objectIn(`${line.toString('utf8', metadata, managedFields)}}`),
    spec: () => objectIn(line.toString('utf8', spec, status + 1)),
    status: () => objectIn(line.toString('utf8', status + STATUS.length - 1, line.length - 2)),
    specHas(bytes) {
      const at = line.indexOf(bytes, spec);
      return at >= 0 && at < status;
    },
    statusHas: (bytes) => line.indexOf(bytes, status) >= 0,
    digest() {
      const others = line.subarray(versionEnd, managedFields);
      return hash(
        'sha256',
        Buffer.concat([line.subarray(metadata, version), others, line.subarray(spec, status)]),
        'base64',
      );
    },
  };
}

const MODIFIED = Buffer.from('{"type":"MODIFIED"');

/** Whether the line of a watch event says that an object was changed (and not created or deleted). */
export function isModified(line: Buffer): boolean {
  return line.subarray(0, MODIFIED.length).equals(MODIFIED);
}

const OURS = Buffer.from('archaware');

/**
 * Returns the JSON of an object, or of an event, without `managedFields`, which often are a third of it. They stay if archaware's
 * name is in them or before them: then they say what archaware wrote.
 */
export function withoutManagedFields(json: Buffer): string {
  const places = placesOf(json, 0);
  if (places === undefined) return json.toString('utf8');
  const ours = json.indexOf(OURS);
  if (ours >= 0 && ours < places.managedFieldsEnd) return json.toString('utf8');
  return json.toString('utf8', 0, places.managedFields) + json.toString('utf8', places.managedFieldsEnd);
}

function objectIn(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
/** Returns a function that takes bytes as they arrive and calls `onLine` for each line, without its line feed. */
export function splitLines(onLine: (line: Buffer) => void): (piece: Buffer) => void {
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
 * Reads an event of a watch as a whole. `version`: that of its object.
 *
 * @throws ApiError if the server says that the watch is over
 */
export function readEvent(line: Buffer, path: string) {
  const event = parseJson(withoutManagedFields(line));
  if (!isObject(event)) throw new Error('an event of the watch is not JSON');
  const object = objectAt(event, 'object');
  if (event.type === 'ERROR') throw new ApiError(Number(object.code ?? 500), object, `watch ${path}`);
  return { type: event.type, object, version: stringAt(objectAt(object, 'metadata'), 'resourceVersion') };
}
