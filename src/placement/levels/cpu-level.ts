import { isObject, type JsonObject, listAt, objectAt } from '../../kit/json.ts';
import type { Platform } from '../../kit/platform.ts';
import { CPU_LEVEL_LABELS, CPU_LEVEL_VALUE } from '../../names.ts';

/** A level of x86-64 CPUs above the lowest (GOAMD64, x86-64 psABI). */
export type CpuLevel = keyof typeof CPU_LEVEL_LABELS;

/** The architecture that has these levels. */
export const LEVELLED = 'amd64';

/** From the lowest to the highest. */
export const CPU_LEVELS: readonly CpuLevel[] = ['v2', 'v3', 'v4'];

/** How many of the cluster's nodes of amd64 carry the label of a level. */
export type Carried = 'none' | 'some' | 'all';

/** For each level, how many nodes carry its label. */
export type CpuLevels = { readonly [level in CpuLevel]: Carried };

/** No node carries a label, or no node is known. */
export const NO_CPU_LEVELS: CpuLevels = { v2: 'none', v3: 'none', v4: 'none' };

/** The CPU level that the images of a pod need. */
export type LevelNeed = {
  readonly level: CpuLevel;
  /** The first image that needs it. */
  readonly image: string;
  readonly carried: Carried;
  /** Whether only nodes of amd64 run the pod. Nodes that emulate it (`architectures.compatible`) have no such label. */
  readonly isAlone: boolean;
};

/**
 * Returns the level that an image needs; undefined: none. Only a single manifest needs one: container runtimes pull it on every node,
 * and take no entry of a level from an index. node-feature-discovery does not run on Windows.
 */
export function levelOf(
  platforms: readonly Platform[],
  os: string,
  isIndex: boolean | undefined,
): CpuLevel | undefined {
  const [only] = platforms;
  if (isIndex !== false || only === undefined || os !== 'linux' || only.os !== os) return undefined;
  if (only.architecture !== LEVELLED) return undefined;
  const variant = only.variant?.toLowerCase();
  return CPU_LEVELS.find((level) => level === variant);
}

/** Returns the need of a pod with these images, which may run on these architectures; undefined: it needs no level. */
export function levelNeed(
  levels: readonly { readonly image: string; readonly level: CpuLevel }[],
  architectures: readonly string[],
  nodes: CpuLevels,
): LevelNeed | undefined {
  if (levels.length === 0 || !architectures.includes(LEVELLED)) return undefined;
  const highest = levels.reduce((one, other) => (other.level > one.level ? other : one));
  return { ...highest, carried: nodes[highest.level], isAlone: architectures.length === 1 };
}

/**
 * Whether the label is required of nodes. Not while no node carries it, because the pod would wait for ever: only
 * node-feature-discovery says which level a node has.
 */
export function isLevelRequired(need: LevelNeed | undefined): need is LevelNeed {
  return need?.isAlone === true && need.carried !== 'none';
}

/** Returns the labels of which each says that a node has at least the level of this label; empty for any other label. */
export function labelsOfLevel(label: string): readonly string[] {
  const at = CPU_LEVELS.findIndex((level) => CPU_LEVEL_LABELS[level] === label);
  return at < 0 ? [] : CPU_LEVELS.slice(at).map((level) => CPU_LEVEL_LABELS[level]);
}

/** Returns `LABEL=true` for a level. */
export function levelLabelText(level: CpuLevel): string {
  return `${CPU_LEVEL_LABELS[level]}=${CPU_LEVEL_VALUE}`;
}

/** Whether the node selector or the required node affinity of a pod's spec names the label of a level. */
export function asksForLevel(spec: JsonObject): boolean {
  // Most pods have neither, and every pod is read.
  if (spec.nodeSelector === undefined && spec.affinity === undefined) return false;
  const labels: readonly string[] = Object.values(CPU_LEVEL_LABELS);
  const { nodeSelector } = spec;
  if (isObject(nodeSelector) && labels.some((label) => Object.hasOwn(nodeSelector, label))) return true;
  const required = objectAt(objectAt(spec, 'affinity'), 'nodeAffinity').requiredDuringSchedulingIgnoredDuringExecution;
  const terms = (isObject(required) && listAt(required, 'nodeSelectorTerms')) || [];
  return terms.some((term) =>
    (listAt(term, 'matchExpressions') ?? []).some(({ key }) => typeof key === 'string' && labels.includes(key)),
  );
}

/** Whether archaware may write node affinity to an object: in this mode, in others, or in none, as to a DaemonSet. */
type WritesAffinity = 'yes' | 'in-other-modes' | 'never';

/**
 * Returns what a pod of such an image needs and does not get from archaware, as text; undefined: nothing, because archaware requires
 * the label, or every node has it.
 */
export function levelNote(need: LevelNeed, writes: WritesAffinity): string | undefined {
  if (need.carried === 'all' || (writes === 'yes' && isLevelRequired(need))) return undefined;
  const { image, level } = need;
  const label = levelLabelText(level);
  const what = `needs CPUs of ${LEVELLED}/${level} for image ${image}, which may die with "illegal instruction" on others`;
  if (need.carried === 'none') {
    const who = 'node-feature-discovery 0.19 or later sets it';
    return `${what}; nothing is required, because no node that every pod may use has the label ${label} (${who})`;
  }
  if (writes === 'yes') {
    return `${what}; nothing is required, because it may also run on other architectures (architectures.compatible)`;
  }
  const ask = `${what}; let its nodeSelector ask for ${label}`;
  return writes === 'never' ? ask : `${ask}, or use placement.mode affinity or both, which require it`;
}
