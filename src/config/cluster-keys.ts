import { isObject } from '../kit/json.ts';
import type { ConfigFile } from './config-file.ts';
import { variableName } from './keys.ts';
import type { Layers } from './load.ts';
import type { Config } from './schema.ts';

/**
 * What a command on another machine does with a key of the controller's configuration:
 * - `decides`: it is taken, because it is part of a decision about pods and nodes.
 * - `locates`: it is taken, because it says which parts of the controller run and where they are found in the cluster.
 * - `never`: it is not taken. It is a program, a path, a directory, a credential or an address to listen on, which mean nothing
 *   good on another machine, or it only tunes the process that runs there.
 */
export type ClusterUse = 'decides' | 'locates' | 'never';

/** The paths of all keys. A record without a fixed set of names is one key. */
type PathsOf<T> = {
  [K in keyof T & string]: T[K] extends readonly unknown[]
    ? K
    : T[K] extends object
      ? string extends keyof T[K]
        ? K
        : `${K}.${PathsOf<T[K]>}`
      : K;
}[keyof T & string];

/** Every key with its use. A key of the schema that is missing here does not compile. */
export const CLUSTER_KEYS: Readonly<Record<PathsOf<Config>, ClusterUse>> = {
  'placement.mode': 'decides',
  'report.targets': 'decides',
  'placement.publish': 'decides',
  'placement.noCommonArchitecture': 'decides',
  'placement.refused': 'decides',
  'taints.manage': 'decides',
  'taints.key': 'decides',
  'taints.effect': 'decides',
  'taints.nodeSelector': 'decides',
  'architectures.schedulable': 'decides',
  'architectures.compatible': 'decides',
  'architectures.preferred': 'decides',
  'architectures.fallback': 'decides',
  policies: 'decides',
  'pods.excludeNamespaces': 'decides',
  'pods.namespaceSelector': 'decides',
  'pods.daemonSets': 'decides',
  'pods.matchNodeLabels': 'decides',
  'pods.onWrongNode': 'decides',
  systemNamespaces: 'decides',
  'images.unresolvable': 'decides',
  'images.fallbackAfter': 'decides',
  'images.overrides': 'decides',
  'images.cache.maxEntries': 'decides',
  'images.cache.tagTtl': 'decides',
  'images.cache.alwaysTagTtl': 'decides',
  'images.cache.failureTtl': 'decides',
  'registries.insecure': 'decides',
  'registries.mirrors': 'decides',
  'registries.sparse': 'decides',
  'registries.private': 'decides',
  'registries.containerdConfigDirectory': 'never',
  'registries.containersRegistriesConf': 'never',
  'registries.caFile': 'never',
  'registries.addresses.allow': 'never',
  'registries.addresses.deny': 'never',
  'registries.maxInFlight': 'never',
  'registries.timeout': 'never',
  'credentials.pullSecrets': 'never',
  'credentials.dockerConfigFiles': 'never',
  'credentials.directory': 'never',
  'credentials.kubelet.config': 'never',
  'credentials.kubelet.binDirectory': 'never',
  'webhook.enabled': 'locates',
  'webhook.address': 'never',
  'webhook.certificates': 'never',
  'webhook.path': 'never',
  'webhook.warnings': 'never',
  'webhook.verdictLabels': 'never',
  'nodeLabels.directory': 'never',
  'bootstrap.timeout': 'never',
  'leaderElection.enabled': 'locates',
  'leaderElection.namespace': 'locates',
  'leaderElection.name': 'locates',
  'leaderElection.leaseDuration': 'never',
  loops: 'locates',
  workers: 'never',
  'metrics.address': 'locates',
  'log.level': 'never',
  'log.format': 'never',
};

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
  const refused = Object.entries(CLUSTER_KEYS).flatMap(([path, use]) =>
    use === 'never' || (hasLogins && ROUTES.includes(path)) ? [path] : [],
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
