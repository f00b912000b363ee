import { type NodePoolProblem, nodePoolProblems, readNodePool } from '../../analysis/nodes/node-pools.ts';
import { messageOf } from '../../kit/errors.ts';
import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError, isForbidden } from '../../kube/errors.ts';
import { find, readAll } from '../../kube/read.ts';
import { FIELD_MANAGER } from '../../names.ts';
import type { NamedObject } from '../../placement/objects/kinds.ts';
import { readNamespace } from '../../placement/objects/namespace.ts';
import type { Settings } from '../../placement/settings.ts';
import { READER_HINT } from '../failure.ts';

/** What is not known without the right to read namespaces. */
export const UNLABELLED = 'the labels of namespaces are not known to policies';

/**
 * Reads with the rights of the person who runs the command. Where one is missing, the result is undefined, and `onMissing` gets one
 * line with the right and what is not known `without` it.
 */
export async function permitted<T>(
  right: string,
  without: string,
  onMissing: (text: string, refusal: ApiError) => void,
  read: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!isForbidden(error)) throw error;
    onMissing(`the right to ${right} is missing: ${without}`, error);
    return undefined;
  }
}

/** Prints what is not known, with what the API server said, and who can help. */
export function noteMissing(note: (line: string) => void): (text: string, refusal: ApiError) => void {
  return (text, { message }) => note(`${text} (${message}; ${READER_HINT})`);
}

/** Reads a namespace. One that does not exist yet, or may not be read, counts as one without labels. */
export async function namespaceOf(
  client: ApiClient | undefined,
  name: string,
  onMissing: (text: string, refusal: ApiError) => void,
  signal: AbortSignal,
) {
  const path = `/api/v1/namespaces/${encodeURIComponent(name)}`;
  const object =
    client && (await permitted(`get namespace ${name}`, UNLABELLED, onMissing, () => find(client, path, signal)));
  return { ...readNamespace(object ?? {}), name };
}

const KARPENTER = '/apis/karpenter.sh/v1';
/** The status codes that mean: Karpenter is not installed, or these credentials may not read its objects. */
const NOT_THERE: ReadonlySet<number> = new Set([403, 404]);

/**
 * Reads Karpenter's NodePools with the rights of the user who runs the command; undefined if they cannot be read. They are only
 * used for hints, so no failure ends the command. A failure that is not about rights is passed to `note`.
 */
export async function readNodePools<T>(
  client: ApiClient,
  read: (object: JsonObject) => T | undefined,
  note: (line: string) => void,
  signal: AbortSignal,
): Promise<T[] | undefined> {
  try {
    // Every user may ask whether the kind exists. If not, no request is sent that could be refused.
    await client.request('get', KARPENTER, { signal });
    return await readAll(client, `${KARPENTER}/nodepools`, read, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError && NOT_THERE.has(error.status)) return undefined;
    note(`NodePools could not be read: ${messageOf(error)}`);
    return undefined;
  }
}

/** A problem of a NodePool of Karpenter. */
export type PoolProblem = NamedObject & NodePoolProblem;

/** Reads the problems of the NodePools; undefined if they cannot be read, for a reason that `note` gets. */
export async function readPoolProblems(
  client: ApiClient,
  settings: Settings,
  note: (line: string) => void,
  signal: AbortSignal,
): Promise<readonly PoolProblem[] | undefined> {
  const pools = await readNodePools(client, readNodePool, note, signal);
  return pools?.flatMap((pool) =>
    nodePoolProblems(pool, settings).map((problem) => ({ kind: 'NodePool', name: pool.name, ...problem })),
  );
}

/** Reads the controller's Events of a namespace for which `isWanted` holds. `fields`: what they must have: `reason=WrongNode`. */
export function ownEvents(
  client: ApiClient,
  namespace: string,
  fields: string,
  signal: AbortSignal,
  isWanted: (event: JsonObject) => boolean = () => true,
): Promise<JsonObject[]> {
  const selector = encodeURIComponent(`${fields},reportingController=${FIELD_MANAGER}`);
  const path = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/events?fieldSelector=${selector}`;
  return readAll(client, path, (event) => (isWanted(event) ? event : undefined), signal);
}

/** Returns when what an Event says happened last, in milliseconds since the epoch; 0 if it does not say. */
export function eventTime(event: JsonObject): number {
  const text = stringAt(objectAt(event, 'series'), 'lastObservedTime') ?? stringAt(event, 'eventTime') ?? '';
  return Date.parse(text) || 0;
}
