import { isObject, type JsonObject, objectAt } from '../../../kit/json.ts';
import type { Draft } from './conversion.ts';
import type { Flags } from './noe-arguments.ts';

/** The flags that the chart makes from lists. */
const LISTS: Readonly<Record<string, string>> = {
  proxies: 'registry-proxies',
  schedulableArchitectures: 'cluster-schedulable-archs',
  matchNodeLabels: 'match-node-labels',
  privateRegistries: 'private-registries',
};
/** Values about objects of the chart, which do not affect how pods are placed. */
const OBJECTS = (
  'pod issuer certificate mutatingwebhookconfiguration rolebinding clusterrole clusterrolebinding ' +
  'serviceaccount deployment service'
).split(' ');

/**
 * Returns the flags that Noe's Helm chart makes from its values. A value that is not a flag is converted or noted here.
 */
export function flagsOfValues(values: JsonObject, draft: Draft): Flags {
  const flags = new Map<string, string>();
  for (const [key, flag] of Object.entries(LISTS)) {
    const list = listOf(values, key, draft);
    if (list.length > 0) flags.set(flag, list.join(','));
    if (key === 'matchNodeLabels' && list.length > 0) {
      draft.note(key, list, 'the chart does not pass them on, so Noe ignored them; here they apply');
    }
  }
  const { enabled } = objectAt(values, 'ha');
  if (enabled === true) flags.set('leader-elect', 'true');
  const { binDir, configDir, config } = objectAt(values, 'kubeletConfig');
  if (typeof binDir === 'string') flags.set('image-credential-provider-bin-dir', binDir);
  if (typeof configDir === 'string' && typeof config === 'string') {
    flags.set('image-credential-provider-config', `${configDir}/${config}`);
  }
  carryPaths(values, draft);
  for (const [key, value] of Object.entries(values)) {
    if (OBJECTS.includes(key)) noteObject(key, value, draft);
    else if (!isRead(key)) draft.note(key, value, 'unknown');
  }
  return flags;
}

/** Notes files of the nodes, which the chart mounts. */
function carryPaths(values: JsonObject, draft: Draft): void {
  const docker = listOf(values, 'dockerConfigPathCandidates', draft);
  if (docker.length > 0) {
    const why = 'mount each into the controller, which needs all of them to start; Noe takes the first that exists';
    draft.carry('credentials.dockerConfigFiles', docker, 'dockerConfigPathCandidates');
    draft.note('dockerConfigPathCandidates', docker, why);
  }
  const containerd = listOf(values, 'containerdConfigPathCandidates', draft);
  if (containerd.length > 0) {
    const why = 'mount the certs.d below it, if there is one, and name it in registries.containerdConfigDirectory';
    draft.note('containerdConfigPathCandidates', containerd, why);
  }
}

function noteObject(key: string, value: unknown, draft: Draft): void {
  const isEmpty = value === null || (isObject(value) && Object.keys(value).length === 0);
  if (!isEmpty) draft.note(key, value, 'concerns the objects of its chart; see the manifests of archaware');
}

function isRead(key: string): boolean {
  const others = ['ha', 'image', 'kubeletConfig', 'dockerConfigPathCandidates', 'containerdConfigPathCandidates'];
  return Object.hasOwn(LISTS, key) || others.includes(key);
}

function listOf(values: JsonObject, key: string, draft: Draft): string[] {
  const list = values[key];
  if (list === undefined || list === null) return [];
  if (Array.isArray(list) && list.every((item) => typeof item === 'string')) return list;
  draft.refuse(key, list, 'a list of texts');
  return [];
}
