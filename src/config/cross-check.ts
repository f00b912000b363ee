import { usesAffinity } from '../placement/placing.ts';
import { shown } from './problems.ts';
import type { Config } from './schema.ts';

/** Returns where a key, or a part of it, was given. */
type Where = (key: string, path?: readonly (string | number)[]) => string;

/** Returns a line for each conflict between keys that are all valid alone. */
export function crossCheck(config: Config, where: Where): string[] {
  return [
    ...checkPlugins(config, where),
    ...checkMode(config, where),
    ...checkObserve(config, where),
    ...checkPreferred(config, where),
    ...checkFallback(config, where),
    ...checkPolicies(config, where),
  ];
}

/** Node affinity can be written only at admission. */
function checkMode({ placement, webhook }: Config, where: Where): string[] {
  if (!usesAffinity(placement) || webhook.enabled) return [];
  return [
    `webhook.enabled: got false (${where('webhook.enabled')}), expected true, or not set, with placement.mode: ` +
      `${placement.mode} (${where('placement.mode')})`,
  ];
}

/** A key that asks for writes contradicts the mode that writes nothing. */
function checkObserve({ placement, webhook, pods, loops }: Config, where: Where): string[] {
  if (placement.mode !== 'observe') return [];
  const mode = `with placement.mode: observe (${where('placement.mode')})`;
  const isIdle = !loops.includes('pods') && !loops.includes('daemonsets');
  return [
    ...(webhook.enabled
      ? [`webhook.enabled: got true (${where('webhook.enabled')}), expected false, or not set, ${mode}`]
      : []),
    ...(pods.onWrongNode === 'evict'
      ? [`pods.onWrongNode: got "evict" (${where('pods.onWrongNode')}), expected warn, or not set, ${mode}`]
      : []),
    ...(isIdle ? [`loops: got ${shown(loops)} (${where('loops')}), expected pods or daemonsets in it ${mode}`] : []),
  ];
}

function checkPreferred({ architectures: { preferred, schedulable } }: Config, where: Where): string[] {
  const outside = outsideOf(schedulable, Object.keys(preferred));
  if (outside.length === 0) return [];
  return [
    `architectures.preferred: got ${shown(outside)}, expected only architectures of architectures.schedulable ` +
      `(${schedulable.join(', ')}) (${where('architectures.preferred')})`,
  ];
}

function checkPlugins({ credentials }: Config, where: Where): string[] {
  const { config: plugins, binDirectory } = credentials.kubelet;
  if (plugins === '' || binDirectory !== '') return [];
  return [
    `credentials.kubelet.binDirectory: got "", expected the directory of the plug-ins that ${shown(plugins)} names ` +
      `(${where('credentials.kubelet.config')})`,
  ];
}

function checkFallback({ architectures, images }: Config, where: Where): string[] {
  const { fallback, schedulable } = architectures;
  const problems: string[] = [];
  const outside = outsideOf(schedulable, fallback);
  if (outside.length > 0) {
    problems.push(
      `architectures.fallback: got ${shown(outside)}, expected only architectures of architectures.schedulable ` +
        `(${schedulable.join(', ')}) (${where('architectures.fallback')})`,
    );
  }
  if (images.unresolvable === 'fallback' && fallback.length === 0) {
    problems.push(
      `architectures.fallback: got [], expected at least one architecture with images.unresolvable: fallback ` +
        `(${where('images.unresolvable')})`,
    );
  }
  return problems;
}

/** Checks each policy together with the global keys. */
function checkPolicies({ policies, architectures, images }: Config, where: Where): string[] {
  return policies.flatMap((policy, index) => {
    const name = `policies[${index}]`;
    const at = (field: string) => where('policies', [index, field]);
    const schedulable = policy.schedulable ?? architectures.schedulable;
    const fallback = policy.fallback ?? architectures.fallback;
    const problems: string[] = [];
    const disliked = outsideOf(schedulable, Object.keys(policy.preferred ?? {}));
    if (disliked.length > 0) {
      const of = policy.schedulable === undefined ? 'architectures.schedulable' : `${name}.schedulable`;
      problems.push(
        `${name}.preferred: got ${shown(disliked)}, expected only architectures of ${of} (${schedulable.join(', ')}) ` +
          `(${at('preferred')})`,
      );
    }
    const outside = outsideOf(schedulable, fallback);
    if (policy.fallback !== undefined && outside.length > 0) {
      const of = policy.schedulable === undefined ? 'architectures.schedulable' : `${name}.schedulable`;
      problems.push(
        `${name}.fallback: got ${shown(outside)}, expected only architectures of ${of} (${schedulable.join(', ')}) ` +
          `(${at('fallback')})`,
      );
    } else if (policy.schedulable !== undefined && outside.length > 0) {
      problems.push(
        `${name}.schedulable: got ${shown(schedulable)}, expected it to have ${outside.join(', ')} of ` +
          `architectures.fallback, or ${name}.fallback within it (${at('schedulable')})`,
      );
    }
    const unresolvable = policy.unresolvable ?? images.unresolvable;
    if (
      unresolvable === 'fallback' &&
      fallback.length === 0 &&
      (policy.unresolvable ?? policy.fallback) !== undefined
    ) {
      const [of, field] = policy.unresolvable === undefined ? ['images', 'fallback'] : [name, 'unresolvable'];
      problems.push(
        `${name}.fallback: got [], expected at least one architecture with ${of}.unresolvable: fallback (${at(field)})`,
      );
    }
    return problems;
  });
}

function outsideOf(schedulable: readonly string[], fallback: readonly string[]): string[] {
  return schedulable.length === 0 ? [] : fallback.filter((name) => !schedulable.includes(name));
}
