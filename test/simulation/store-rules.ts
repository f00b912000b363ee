import { isDeepStrictEqual } from 'node:util';
import { at, type JsonObject, text } from '../simulator/json.ts';
import { nameOf, uidOf } from '../simulator/objects/store.ts';
import type { ModelServer } from './api-server.ts';
import { expectedOf, type Kept, type Replica } from './program.ts';
import { isEnding } from './truth.ts';

type Fail = (rule: string) => void;

/** The parts of the program's answers to what a replica keeps, by the names of the API. */
const KINDS: readonly (readonly [kind: Kept, apiVersion: string, plural: string])[] = [
  ['pods', 'v1', 'pods'],
  ['nodes', 'v1', 'nodes'],
  ['namespaces', 'v1', 'namespaces'],
  ['daemonSets', 'apps/v1', 'daemonsets'],
];

/** Checks what a replica keeps and remembers, at a moment when nothing is under way to it. `fail` is called with each broken rule. */
export function checkStores(replica: Replica, server: ModelServer, fail: Fail): void {
  for (const kind of KINDS) checkStore(replica, kind, server, fail);
  checkMemory(replica, server, fail);
}

/** The store of a replica has what it would have if it had started just now. */
function checkStore(
  { name, watches }: Replica,
  [kind, apiVersion, plural]: (typeof KINDS)[number],
  server: ModelServer,
  fail: Fail,
): void {
  const { store } = watches[kind];
  const real = new Map(server.all(apiVersion, plural).map((item) => [keyIn(item), item]));
  for (const key of store.keys()) if (!real.has(key)) fail(`${name} has a ghost: ${plural} ${key}`);
  for (const [key, item] of real) {
    const kept = store.get(key);
    // A write of metadata by the author of the images makes archaware's write look older (`managedFields` has one time for each
    // manager). Only a new replica sees that.
    const expected = { ...expectedOf(kind, item), written: kept && 'written' in kept ? kept.written : undefined };
    if (kept === undefined) fail(`${name} has lost ${plural} ${key}`);
    else if (kept.uid !== uidOf(item)) fail(`${name} has an older ${plural} ${key}`);
    else if (!isDeepStrictEqual(plain(kept), plain(expected)))
      fail(`${name} has read ${plural} ${key} wrong: ${differences(plain(kept), plain(expected))}`);
  }
}

/** A replica remembers nothing of pods that are gone, and decides no more about those that are being deleted. */
function checkMemory({ name, decided }: Replica, server: ModelServer, fail: Fail): void {
  const pods = new Map(server.all('v1', 'pods').map((pod) => [keyIn(pod), pod]));
  for (const [key, kind] of decided()) {
    const pod = pods.get(key);
    if (pod === undefined) fail(`${name} remembers a pod that is gone: ${key}`);
    if (pod !== undefined && isEnding(pod) && kind !== 'skip')
      fail(`${name} still has a decision (${kind}) about a pod that is being deleted: ${key}`);
  }
}

function keyIn(item: JsonObject): string {
  const namespace = text(at(item, 'metadata', 'namespace'));
  return namespace === '' ? nameOf(item) : `${namespace}/${nameOf(item)}`;
}

/** Without the fields that are undefined. */
function plain(item: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined));
}

function differences(one: Record<string, unknown>, other: Record<string, unknown>): string {
  const fields = new Set([...Object.keys(one), ...Object.keys(other)]);
  const shown = (value: unknown) => JSON.stringify(value) ?? 'nothing';
  return [...fields]
    .filter((field) => !isDeepStrictEqual(one[field], other[field]))
    .map((field) => `${field} is ${shown(one[field])}, not ${shown(other[field])}`)
    .join(', ');
}
