import { isObject } from '../kit/json.ts';
import type { ConfigFile } from './config-file.ts';
import { allKeys, isWithin, variableName } from './keys.ts';
import type { Layers } from './load.ts';

/**
 * The keys, each with all keys below it, that a command on another machine takes from the controller's configuration: they are part of a
 * decision about pods and nodes, or say which parts of the controller run and where they are found in the cluster. Every other key is a
 * program, a path, a directory, a credential or an address to listen on, which mean nothing good on another machine, or it only tunes
 * the process that runs there.
 */
const TAKEN = [
  ...['placement', 'taints', 'architectures', 'policies', 'pods', 'systemNamespaces', 'images', 'report', 'loops'],
  ...['registries.insecure', 'registries.mirrors', 'registries.sparse', 'registries.private'],
  ...[
    'webhook.enabled',
    'leaderElection.enabled',
    'leaderElection.namespace',
    'leaderElection.name',
    'metrics.address',
  ],
];

/** Whether a command on another machine takes this key from the cluster. */
export function isTaken(path: string): boolean {
  return TAKEN.some((group) => isWithin(group, path));
}

/** The keys that say where requests to registries go, and whether they are protected on the way. */
const ROUTES: readonly string[] = ['registries.insecure', 'registries.mirrors'];

/** Layers of which only what a command may take is left, and the keys that were left out. */
type TakenLayers = { readonly layers: Layers; readonly leftOut: readonly string[] };

/**
 * Removes from a configuration that comes from the cluster every key that a command on another machine does not take. Unknown keys
 * stay, so that loading reports them.
 *
 * `hasLogins`: whether the user gave logins of their own. Then the cluster does not say where lookups go either: a mirror would
 * receive those logins, or a connection without TLS would show them.
 */
export function takenFrom({ file, environment, flags }: Layers, hasLogins: boolean): TakenLayers {
  const leftOut = new Set<string>();
  const refused = allKeys().flatMap(({ path }) =>
    isTaken(path) && !(hasLogins && ROUTES.includes(path)) ? [] : [path],
  );
  const variables = new Map(refused.map((path) => [variableName(path), path]));
  const keep = (path: string | undefined): boolean => {
    if (path === undefined || !refused.includes(path)) return true;
    leftOut.add(path);
    return false;
  };
  const layers = {
    file: file && { ...file, value: without(file.value, [], keep) },
    environment: Object.fromEntries(Object.entries(environment).filter(([name]) => keep(variables.get(name)))),
    flags: Object.fromEntries(Object.entries(flags).filter(([path]) => keep(path))),
  };
  return { layers, leftOut: [...leftOut].sort() };
}

/** Returns a copy of a parsed file without the keys that are not kept. A group that is not a map stays, to be reported. */
function without(value: unknown, path: readonly string[], keep: (path: string) => boolean): ConfigFile['value'] {
  if (!isObject(value)) return value;
  const entries = Object.entries(value).flatMap(([name, part]): [string, unknown][] => {
    const own = [...path, name];
    return keep(own.join('.')) ? [[name, without(part, own, keep)]] : [];
  });
  return Object.fromEntries(entries);
}
