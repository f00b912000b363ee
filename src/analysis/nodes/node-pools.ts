import { type JsonObject, listAt, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { isReservedKey } from '../../kit/label-syntax.ts';
import { normaliseArchitecture } from '../../kit/platform.ts';
import { ARCHITECTURE_LABELS, KARPENTER_POOL } from '../../names.ts';
import { intersect } from '../../placement/images.ts';
import { taintText } from '../../placement/nodes/managed.ts';
import { isOfKind, readTaint } from '../../placement/nodes/node.ts';
import { POOL_PAGE, type PoolSettings, taintsNodes } from '../../placement/nodes/pools.ts';
import type { Taint } from '../../placement/patch/tolerations.ts';
import { usesTaints } from '../../placement/placing.ts';

/** A NodePool of Karpenter (`karpenter.sh/v1`), reduced to what its nodes will have. */
export type NodePool = {
  readonly name: string;
  /** The labels that each of its nodes certainly has. */
  readonly labels: Readonly<Record<string, string>>;
  /** The labels whose value is chosen when a node is created. */
  readonly openLabels: readonly string[];
  /** The architectures that the pool allows; undefined if it names none. */
  readonly architectures: readonly string[] | undefined;
  readonly taints: readonly Taint[];
  readonly startupTaints: readonly Taint[];
};

/** A problem of a NodePool under the present configuration. */
export type NodePoolProblem = {
  readonly problem:
    | 'startup-taint'
    | 'taint-missing'
    | 'taint-of-another-architecture'
    | 'several-architectures'
    | 'taint-not-tolerated';
  readonly severity: 'error' | 'warning';
  readonly note: string;
};

/** Reads a NodePool from the API server's object. Never throws; undefined for one that is being deleted. */
export function readNodePool(object: JsonObject): NodePool | undefined {
  const metadata = objectAt(object, 'metadata');
  if (stringAt(metadata, 'deletionTimestamp') !== undefined) return undefined;
  const template = objectAt(objectAt(object, 'spec'), 'template');
  const spec = objectAt(template, 'spec');
  const name = stringAt(metadata, 'name') ?? '';
  const labels: Record<string, string> = {
    ...stringsAt(objectAt(template, 'metadata'), 'labels'),
    [KARPENTER_POOL]: name,
  };
  const openLabels: string[] = [];
  // Karpenter treats the old label name like the new one.
  const architectures = Object.entries(labels).flatMap(([key, value]) =>
    ARCHITECTURE_LABELS.includes(key) ? [[value]] : [],
  );
  for (const requirement of listAt(spec, 'requirements') ?? []) {
    const { key, operator, values } = requirement;
    if (typeof key !== 'string') continue;
    const allowed = operator === 'In' && Array.isArray(values) ? values.map(String) : undefined;
    const [only, ...others] = allowed ?? [];
    if (only !== undefined && others.length === 0) labels[key] = only;
    else if (operator !== 'DoesNotExist') openLabels.push(key);
    if (allowed !== undefined && ARCHITECTURE_LABELS.includes(key)) architectures.push(allowed);
  }
  const known = architectures.map((list) => list.flatMap((text) => normaliseArchitecture(text) ?? []));
  return {
    name,
    labels,
    openLabels,
    architectures: known.length === 0 ? undefined : intersect(known),
    taints: (listAt(spec, 'taints') ?? []).map(readTaint),
    startupTaints: (listAt(spec, 'startupTaints') ?? []).map(readTaint),
  };
}

/** Returns what must change in a NodePool to fit the configuration; empty if it fits. */
export function nodePoolProblems(pool: NodePool, settings: PoolSettings): NodePoolProblem[] {
  const { key } = settings.taints;
  const startup = pool.startupTaints.find((taint) => taint.key === key);
  const problems = [startup && startupTaint(startup), templateProblem(pool, settings)];
  return problems.filter((problem) => problem !== undefined);
}

function startupTaint(taint: Taint): NodePoolProblem {
  const note =
    `has ${taintText(taint)} in startupTaints. That taint is never removed, so Karpenter never counts a node as initialized, and waits ` +
    'for it instead of starting another: move the taint to taints';
  return { problem: 'startup-taint', severity: 'error', note: `${note} (${POOL_PAGE})` };
}

function templateProblem(pool: NodePool, settings: PoolSettings): NodePoolProblem | undefined {
  const { key, effect } = settings.taints;
  const { architectures } = pool;
  const present = pool.taints.find(isOfKind(settings.taints));
  const warning = (problem: NodePoolProblem['problem'], note: string) =>
    ({ problem, severity: 'warning', note: `${note} (${POOL_PAGE})` }) as const;
  if (!usesTaints(settings)) {
    if (present === undefined) return undefined;
    const note = `sets the taint ${taintText(present)}, and in the mode ${settings.mode} pods get no toleration: new pods get no node of it. Remove the taint`;
    return warning('taint-not-tolerated', note);
  }
  if (!mayBeTainted(pool, settings)) return undefined;
  const [architecture, ...others] = architectures ?? [];
  if (architecture === undefined || others.length > 0) {
    const allows = architecture === undefined ? 'names no architecture' : `allows ${architectures?.join(', ')}`;
    const note = `${allows}, and a template has one taint for all of its nodes. ${consequence(settings)} Make a NodePool for each architecture, each with its taint, or use placement.mode: affinity`;
    return warning('several-architectures', note);
  }
  const wanted = { key, value: architecture, effect };
  if (present === undefined) {
    const note = `lacks the taint ${taintText(wanted)}. ${consequence(settings)} Add the taint to spec.template.spec.taints; Karpenter then replaces the nodes of the pool`;
    return warning('taint-missing', note);
  }
  if (present.value === architecture) return undefined;
  const note = `sets the taint ${taintText(present)}, but its nodes are ${architecture}: the taint has to be ${taintText(wanted)}`;
  return warning('taint-of-another-architecture', note);
}

function consequence({ mode }: PoolSettings): string {
  const pods = mode === 'both' ? 'pods that archaware leaves alone' : 'pending pods';
  return `Karpenter plans without the taint that archaware sets, and may go on starting nodes on which ${pods} cannot run.`;
}

/** Whether nodes of a pool may get archaware's taint. A label whose value is not known yet may match. */
function mayBeTainted({ labels, openLabels }: NodePool, { mode, taints }: PoolSettings): boolean {
  const nodeSelector = taints.nodeSelector.filter(({ key }) => isLabelKnown({ labels, openLabels }, key));
  return taintsNodes({ mode, taints: { ...taints, nodeSelector } }, labels);
}

/** Whether the pool alone says which value its nodes have for a label, or that they have none. */
export function isLabelKnown({ labels, openLabels }: Pick<NodePool, 'labels' | 'openLabels'>, key: string): boolean {
  // Nodes get these although no NodePool names them.
  const isOfProvider = isReservedKey(key) || /^(?:karpenter\.|[^/]+\.karpenter\.)/.test(key);
  return Object.hasOwn(labels, key) || !(openLabels.includes(key) || isOfProvider);
}
