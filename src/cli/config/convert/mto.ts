import { ConfigurationError } from '../../../config/shown-problems.ts';
import { isObject, type JsonObject, objectAt, stringAt } from '../../../kit/json.ts';
import { type Conversion, createDraft, type Draft } from './conversion.ts';
import { flattenLists, readDocuments } from './documents.ts';
import { selectorText } from './label-selector.ts';
import { carryPodConfigs, scoring } from './mto-policies.ts';

const GROUP = 'multiarch.openshift.io/';
const LEVELS: Readonly<Record<string, string>> = { Normal: 'info', Debug: 'debug', Trace: 'debug', TraceAll: 'debug' };
/** The operator itself ignores these namespaces, whatever its selector says. */
const EXCLUDED = ['kube-*', 'openshift-*', 'hypershift-*'];

/**
 * Converts ClusterPodPlacementConfig and PodPlacementConfig manifests of multiarch-tuning-operator.
 *
 * @throws ConfigurationError naming the file, and each field with its value and what is allowed
 */
export function convertMto(file: string, text: string): Conversion {
  const objects = flattenLists(readDocuments(file, text));
  const ours = (kind: string) => objects.filter((object) => kindOf(object) === kind);
  const [clusterConfigs, podConfigs] = [ours('ClusterPodPlacementConfig'), ours('PodPlacementConfig')];
  const found = objects.map((object) => stringAt(object, 'kind') ?? 'an object without a kind');
  if (clusterConfigs.length > 1 || clusterConfigs.length + podConfigs.length === 0) {
    throw new ConfigurationError([
      `${file}: got ${found.join(', ') || 'nothing'}, expected at most one ClusterPodPlacementConfig, and PodPlacementConfigs, of ${GROUP}*`,
    ]);
  }
  const draft = createDraft(file);
  draft.set('placement.mode', 'affinity');
  draft.set('webhook.enabled', true);
  draft.set('pods.excludeNamespaces', EXCLUDED);
  const [clusterConfig] = clusterConfigs;
  if (clusterConfig === undefined) {
    draft.note('ClusterPodPlacementConfig', undefined, 'not in the file; without one the operator changes no pod');
  }
  const preferred = clusterConfig === undefined ? new Map<string, number>() : carryClusterConfig(clusterConfig, draft);
  carryPodConfigs(podConfigs, preferred, draft);
  objects.forEach((object, index) => {
    if (clusterConfigs.includes(object) || podConfigs.includes(object)) return;
    draft.note(`${found[index]} ${stringAt(objectAt(object, 'metadata'), 'name') ?? ''}`.trim(), undefined, 'not read');
  });
  draft.note(
    'multiarch.openshift.io/scheduling-gate',
    undefined,
    'only its own controller releases pods with its gate: see docs/migrating.md before you remove it',
  );
  return draft.finish();
}

function kindOf(object: JsonObject): string | undefined {
  return stringAt(object, 'apiVersion')?.startsWith(GROUP) ? stringAt(object, 'kind') : undefined;
}

function carryClusterConfig(object: JsonObject, draft: Draft): ReadonlyMap<string, number> {
  const { logVerbosity, namespaceSelector, plugins, fallbackArchitecture, ...unknown } = objectAt(object, 'spec');
  carryLogLevel(logVerbosity, draft);
  const selector = selectorText(namespaceSelector, 'spec.namespaceSelector', draft);
  if (selector !== '') draft.set('pods.namespaceSelector', selector);
  carryFallback(fallbackArchitecture, draft);
  const preferred = carryPlugins(plugins, draft);
  if (preferred.size > 0) draft.set('architectures.preferred', Object.fromEntries(preferred));
  for (const [key, value] of Object.entries(unknown)) draft.note(`spec.${key}`, value, 'unknown');
  return preferred;
}

function carryLogLevel(value: unknown, draft: Draft): void {
  if (value === undefined || value === '') return;
  const level = typeof value === 'string' && Object.hasOwn(LEVELS, value) ? LEVELS[value] : undefined;
  if (level === undefined) {
    draft.refuse('spec.logVerbosity', value, `one of ${Object.keys(LEVELS).join(', ')}`);
    return;
  }
  draft.set('log.level', level);
  if (value === 'Trace' || value === 'TraceAll')
    draft.note('spec.logVerbosity', value, 'the most detailed level here is debug');
}

function carryFallback(value: unknown, draft: Draft): void {
  if (value === undefined || value === '') return;
  const architecture = draft.architecture('spec.fallbackArchitecture', value);
  if (architecture === undefined) return;
  draft.set('images.unresolvable', 'fallback');
  draft.set('architectures.fallback', [architecture]);
}

function carryPlugins(plugins: unknown, draft: Draft): ReadonlyMap<string, number> {
  if (plugins === undefined || plugins === null) return new Map();
  if (!isObject(plugins)) {
    draft.refuse('spec.plugins', plugins, 'a map with nodeAffinityScoring and execFormatErrorMonitor');
    return new Map();
  }
  const { nodeAffinityScoring, execFormatErrorMonitor, ...unknown } = plugins;
  if (isObject(execFormatErrorMonitor) && execFormatErrorMonitor.enabled === true) {
    draft.note(
      'spec.plugins.execFormatErrorMonitor',
      execFormatErrorMonitor,
      'always on here, without a daemon on the nodes: archaware reads the status of pods (Event WrongNode; pods.onWrongNode)',
    );
  }
  for (const [key, value] of Object.entries(unknown)) draft.note(`spec.plugins.${key}`, value, 'unknown');
  return scoring(nodeAffinityScoring, 'spec.plugins.nodeAffinityScoring', draft) ?? new Map();
}
