import { usesAffinity, usesTaints } from '../placement/placing.ts';
import type { Config } from './schema.ts';
import { shown } from './shown-problems.ts';

/** Returns where a key, or a part of it, was given. */
type WhereSet = (key: string, path?: readonly (string | number)[]) => string;

/** Returns a line for each conflict between keys that are all valid alone. */
export function crossCheck(config: Config, where: WhereSet): string[] {
  return [
    ...checkPlugins(config, where),
    ...checkMode(config, where),
    ...checkPublish(config, where),
    ...checkObserve(config, where),
    ...checkArchitectures(config, where),
    ...checkMirrors(config, where),
    ...checkRuntime(config, where),
    ...checkPolicies(config, where),
  ];
}

/** Node affinity can be written only at admission. */
function checkMode({ placement, webhook }: Config, where: WhereSet): string[] {
  if (!usesAffinity(placement) || webhook.enabled) return [];
  return [
    `webhook.enabled: got false (${where('webhook.enabled')}), expected true, or not set, with placement.mode: ` +
      `${placement.mode} (${where('placement.mode')})`,
  ];
}

/** The API server places pods by tolerations alone. */
function checkPublish({ placement }: Config, where: WhereSet): string[] {
  if (!placement.publish || usesTaints(placement)) return [];
  return [
    `placement.publish: got true (${where('placement.publish')}), expected false with placement.mode: ` +
      `${placement.mode} (${where('placement.mode')})`,
  ];
}

/** A key that asks for writes contradicts the mode that writes nothing. */
function checkObserve({ placement, webhook, pods, loops }: Config, where: WhereSet): string[] {
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

/** A node has one container runtime, and each of the keys is one runtime's. */
function checkRuntime({ registries }: Config, where: WhereSet): string[] {
  const [key, other] = ['registries.containersRegistriesConf', 'registries.containerdConfigDirectory'];
  const { containersRegistriesConf: path, containerdConfigDirectory } = registries;
  if (path === '' || containerdConfigDirectory === '') return [];
  return [`${key}: got ${shown(path)} (${where(key)}), expected no value together with ${other} (${where(other)})`];
}

function checkPlugins({ credentials }: Config, where: WhereSet): string[] {
  const { config: plugins, binDirectory } = credentials.kubelet;
  if (plugins === '' || binDirectory !== '') return [];
  return [
    `credentials.kubelet.binDirectory: got "", expected the directory of the plug-ins that ${shown(plugins)} names ` +
      `(${where('credentials.kubelet.config')})`,
  ];
}

function checkArchitectures({ architectures, images }: Config, where: WhereSet): string[] {
  const { preferred, fallback, schedulable } = architectures;
  const given = { 'architectures.preferred': Object.keys(preferred), 'architectures.fallback': fallback };
  const problems = Object.entries(given).flatMap(([key, names]) =>
    outside(key, names, GLOBAL, schedulable, where(key)),
  );
  if (images.unresolvable === 'fallback' && fallback.length === 0) {
    problems.push(
      `architectures.fallback: got [], expected at least one architecture with images.unresolvable: fallback ` +
        `(${where('images.unresolvable')})`,
    );
  }
  return problems;
}

/** What a mirror lacks, container runtimes get from the registry behind it. */
function checkMirrors({ registries: { mirrors } }: Config, where: WhereSet): string[] {
  return Object.entries(mirrors).flatMap(([name, { fallback, sparse }]) =>
    sparse && fallback
      ? `registries.mirrors.${name}.sparse: got true, expected false, or fallback: false beside it, because the registry ` +
        `has what its mirrors lack (${where('registries.mirrors', [name, 'sparse'])})`
      : [],
  );
}

function checkPolicies({ policies, architectures, images }: Config, where: WhereSet): string[] {
  return policies.flatMap((policy, index) => {
    const name = `policies[${index}]`;
    const at = (field: string) => where('policies', [index, field]);
    const schedulable = policy.schedulable ?? architectures.schedulable;
    const fallback = policy.fallback ?? architectures.fallback;
    const of = policy.schedulable === undefined ? GLOBAL : `${name}.schedulable`;
    const problems = outside(
      `${name}.preferred`,
      Object.keys(policy.preferred ?? {}),
      of,
      schedulable,
      at('preferred'),
    );
    const missing = outsideOf(schedulable, fallback);
    if (policy.fallback !== undefined) {
      problems.push(...outside(`${name}.fallback`, fallback, of, schedulable, at('fallback')));
    } else if (policy.schedulable !== undefined && missing.length > 0) {
      problems.push(
        `${name}.schedulable: got ${shown(schedulable)}, expected it to have ${missing.join(', ')} of ` +
          `architectures.fallback, or ${name}.fallback within it (${at('schedulable')})`,
      );
    }
    const unresolvable = policy.unresolvable ?? images.unresolvable;
    if (
      unresolvable === 'fallback' &&
      fallback.length === 0 &&
      (policy.unresolvable ?? policy.fallback) !== undefined
    ) {
      const [group, field] = policy.unresolvable === undefined ? ['images', 'fallback'] : [name, 'unresolvable'];
      problems.push(
        `${name}.fallback: got [], expected at least one architecture with ${group}.unresolvable: fallback (${at(field)})`,
      );
    }
    return problems;
  });
}

const GLOBAL = 'architectures.schedulable';

/** Returns the problem of a key that names architectures which the key `of` leaves out. */
function outside(
  key: string,
  names: readonly string[],
  of: string,
  schedulable: readonly string[],
  where: string,
): string[] {
  const wrong = outsideOf(schedulable, names);
  if (wrong.length === 0) return [];
  return [`${key}: got ${shown(wrong)}, expected only architectures of ${of} (${schedulable.join(', ')}) (${where})`];
}

function outsideOf(schedulable: readonly string[], fallback: readonly string[]): string[] {
  return schedulable.length === 0 ? [] : fallback.filter((name) => !schedulable.includes(name));
}
