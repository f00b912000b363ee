import { type JsonObject, listAt, stringAt } from '../../kit/json.ts';
import type { Decision } from '../decide.ts';
import { architecturesOf, type Node } from '../nodes/node.ts';
import { taintsNodes } from '../nodes/pools.ts';
import type { PodTemplate } from '../objects/pod.ts';
import { lacking, tolerationsFor } from '../patch/tolerations.ts';
import { usesTaints } from '../placing.ts';
import { few } from '../reasons.ts';
import type { Settings } from '../settings.ts';

/*
 * A hard topology spread constraint counts nodes whose taint keeps the pod off, unless it says `nodeTaintsPolicy: Honor` (KEP-3094). A
 * host or a zone with only such nodes stays empty, so all others take no more than `maxSkew` pods. Nothing here decides where a pod may
 * go, and no pods or nodes are counted: `explain`, `plan` and `check` name the constraint and its cure.
 */

/** A constraint that the scheduler enforces (`whenUnsatisfiable: DoNotSchedule`) and that counts nodes whose taints keep the pod off. */
export type HardSpread = {
  /** The node label whose values are the domains. */
  readonly topologyKey: string;
  /** Whether nodes count that the pod's own selector and affinity exclude (`nodeAffinityPolicy: Ignore`). */
  readonly ignoresAffinity: boolean;
};

/** A pod carries the constraints in each copy, but hardly more than two of them. */
const MOST_CONSTRAINTS = 16;

/** Reads the hard constraints of a pod's or a template's `spec` that count nodes whatever their taints. */
export function readHardSpread(spec: JsonObject): readonly HardSpread[] {
  return (listAt(spec, 'topologySpreadConstraints') ?? [])
    .filter(({ whenUnsatisfiable, nodeTaintsPolicy }) => {
      return whenUnsatisfiable === 'DoNotSchedule' && nodeTaintsPolicy !== 'Honor';
    })
    .slice(0, MOST_CONSTRAINTS)
    .map((constraint) => ({
      topologyKey: stringAt(constraint, 'topologyKey') ?? '',
      ignoresAffinity: constraint.nodeAffinityPolicy === 'Ignore',
    }));
}

/** Returns the architectures whose nodes have the taint, or will have it. */
export function taintedArchitectures(nodes: Iterable<Node>, settings: Pick<Settings, 'mode' | 'taints'>): string[] {
  const { key, effect } = settings.taints;
  const isTainted = ({ labels, taints }: Node) =>
    taintsNodes(settings, labels) || (taints ?? []).some((taint) => taint.key === key && taint.effect === effect);
  return architecturesOf([...nodes].filter(isTainted));
}

/**
 * Returns what the taints of these architectures do to a pod with such constraints, and what helps; undefined if it runs on all of them,
 * or if that is not known. In the mode `both` archaware's node affinity excludes the nodes, and so may the author's.
 */
export function spreadNote(
  constraints: readonly HardSpread[],
  { tolerations = [], asked }: Pick<PodTemplate, 'tolerations' | 'asked'>,
  decision: Decision | { readonly kind: 'skip' },
  { mode, taints }: Pick<Settings, 'mode' | 'taints'>,
  tainted: readonly string[],
): string | undefined {
  if (constraints.length === 0 || decision.kind !== 'place' || decision.followsCluster) return undefined;
  if (decision.unknown.length > 0 || !usesTaints({ mode }) || taints.effect !== 'NoSchedule') return undefined;
  const away = tainted.filter(
    (name) => !decision.architectures.includes(name) && lacking(tolerations, tolerationsFor(taints, [name])).length > 0,
  );
  const counted = away.filter((name) => mode === 'taints' && (asked?.architectures.includes(name) ?? true));
  const affected = constraints.filter(({ ignoresAffinity }) => (ignoresAffinity ? away : counted).length > 0);
  if (affected.length === 0) return undefined;
  const nodes = affected.some(({ ignoresAffinity }) => ignoresAffinity) ? away : counted;
  return (
    `its topology spread over ${few(affected.map(({ topologyKey }) => topologyKey))} (DoNotSchedule) counts ${few(nodes)} nodes, ` +
    'although their taint keeps it off, so some of its pods may stay Pending: set nodeTaintsPolicy: Honor in that constraint ' +
    '(docs/workloads.md)'
  );
}
