import { isObject, objectAt, parseJson, stringAt } from '../../kit/json.ts';
import { ApiError } from '../errors.ts';

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
