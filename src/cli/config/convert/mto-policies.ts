import { isObject, type JsonObject, objectAt, stringAt } from '../../../kit/json.ts';
import type { Draft } from './conversion.ts';
import { selectorText } from './label-selector.ts';

type Weights = ReadonlyMap<string, number>;

type PodConfig = {
  readonly namespace: string;
  readonly name: string;
  readonly priority: number;
  readonly podSelector: string;
  readonly preferred: Weights;
};

/**
 * Converts PodPlacementConfigs to policies, the highest priority of a namespace first. In multiarch-tuning-operator the
 * weights of all configs that match a pod add up, with the cluster's weights last. In archaware the first matching
 * policy decides alone, so each policy also gets the weights of those below it.
 */
export function carryPodConfigs(objects: readonly JsonObject[], cluster: Weights, draft: Draft): void {
  const configs = objects.flatMap((object) => readPodConfig(object, draft) ?? []);
  const ordered = configs.sort((a, b) => compare(a.namespace, b.namespace) || b.priority - a.priority);
  const names = new Set<string>();
  const policies = ordered.map((config, index) => {
    const below = ordered.slice(index + 1).filter(({ namespace }) => namespace === config.namespace);
    const always = below.filter(({ podSelector }) => podSelector === '' || podSelector === config.podSelector);
    const preferred = sum([config.preferred, ...always.map((other) => other.preferred), cluster]);
    for (const other of below) {
      const isLost = !always.includes(other) && [...other.preferred].some(([name]) => !config.preferred.has(name));
      if (isLost) noteOverlap(config, other, draft);
    }
    return {
      name: policyName(config, names),
      namespaces: [config.namespace],
      ...(config.podSelector === '' ? {} : { podSelector: config.podSelector }),
      preferred: Object.fromEntries(preferred),
    };
  });
  if (policies.length > 0) draft.set('policies', policies);
}

/** Returns the weights of a nodeAffinityScoring plugin; undefined if it is absent or not enabled. */
export function scoring(plugin: unknown, key: string, draft: Draft): Weights | undefined {
  if (plugin === undefined || plugin === null) return undefined;
  if (!isObject(plugin)) {
    draft.refuse(key, plugin, 'a map with enabled and platforms');
    return undefined;
  }
  const { enabled, platforms, ...unknown } = plugin;
  for (const [name, value] of Object.entries(unknown)) draft.note(`${key}.${name}`, value, 'unknown');
  if (enabled !== undefined && typeof enabled !== 'boolean') draft.refuse(`${key}.enabled`, enabled, 'true or false');
  if (enabled !== true) {
    draft.note(key, plugin, 'not enabled, so its weights are left out');
    return undefined;
  }
  if (!Array.isArray(platforms) || platforms.length === 0) {
    draft.refuse(`${key}.platforms`, platforms, 'a list of at least one {architecture, weight}');
    return undefined;
  }
  return readPlatforms(platforms, `${key}.platforms`, draft);
}

function readPlatforms(platforms: readonly unknown[], key: string, draft: Draft): Weights {
  const weights = new Map<string, number>();
  platforms.forEach((platform, index) => {
    const at = `${key}[${index}]`;
    const { architecture, weight, ...unknown } = isObject(platform) ? platform : {};
    for (const [name, value] of Object.entries(unknown)) draft.note(`${at}.${name}`, value, 'unknown');
    const name = draft.architecture(`${at}.architecture`, architecture);
    if (typeof weight !== 'number' || !Number.isInteger(weight) || weight < 1 || weight > 100) {
      draft.refuse(`${at}.weight`, weight, 'a whole number from 1 to 100');
    } else if (name !== undefined && weights.has(name)) {
      draft.refuse(`${at}.architecture`, architecture, 'each architecture once');
    } else if (name !== undefined) {
      weights.set(name, weight);
    }
  });
  return weights;
}

/**
 * Reads one config. If it has no effect in multiarch-tuning-operator, it is left out with a note: in archaware, a
 * policy without weights would hide the policies below it.
 */
function readPodConfig(object: JsonObject, draft: Draft): PodConfig | undefined {
  const metadata = objectAt(object, 'metadata');
  const [name, namespace] = [stringAt(metadata, 'name') ?? '', stringAt(metadata, 'namespace')];
  const at = `PodPlacementConfig ${namespace ?? '?'}/${name}`;
  if (namespace === undefined || !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(namespace)) {
    draft.refuse(
      `${at}: metadata.namespace`,
      namespace,
      'the namespace that it applies to, because the policy needs it',
    );
    return undefined;
  }
  const { labelSelector, plugins, priority = 0, ...unknown } = objectAt(object, 'spec');
  for (const [key, value] of Object.entries(unknown)) draft.note(`${at}: spec.${key}`, value, 'unknown');
  if (typeof priority !== 'number' || !Number.isInteger(priority) || priority < 0 || priority > 255) {
    draft.refuse(`${at}: spec.priority`, priority, 'a whole number from 0 to 255');
    return undefined;
  }
  const podSelector = selectorText(labelSelector, `${at}: spec.labelSelector`, draft);
  const { nodeAffinityScoring, ...others } = isObject(plugins) ? plugins : {};
  for (const [key, value] of Object.entries(others)) draft.note(`${at}: spec.plugins.${key}`, value, 'unknown');
  const preferred = scoring(nodeAffinityScoring, `${at}: spec.plugins.nodeAffinityScoring`, draft);
  if (preferred !== undefined) return { namespace, name, priority, podSelector, preferred };
  if (nodeAffinityScoring === undefined)
    draft.note(at, undefined, 'has no effect, because it has no nodeAffinityScoring');
  return undefined;
}

/** Adds weights by architecture; the first to name an architecture wins. */
function sum(parts: readonly Weights[]): Weights {
  const total = new Map<string, number>();
  for (const [name, weight] of parts.flatMap((part) => [...part])) {
    if (!total.has(name)) total.set(name, weight);
  }
  return total;
}

function noteOverlap(config: PodConfig, other: PodConfig, draft: Draft): void {
  draft.note(
    `PodPlacementConfig ${config.namespace}/${other.name}`,
    other.podSelector,
    `pods that ${config.name} selects too get the weights of both there; here only the first policy applies. If there are ` +
      `such pods, add a policy for both selectors before these`,
  );
}

/** Returns a name such as `shop-gold` that the schema accepts and that is not taken yet. */
function policyName({ namespace, name }: PodConfig, taken: Set<string>): string {
  const base = `${namespace}-${name}`.toLowerCase().replace(/[^a-z0-9-]+/g, '-');
  for (let count = 1; ; count++) {
    const suffix = count === 1 ? '' : `-${count}`;
    const candidate = `${base.slice(0, 63 - suffix.length).replace(/-+$/, '')}${suffix}`;
    if (taken.has(candidate)) continue;
    taken.add(candidate);
    return candidate;
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
