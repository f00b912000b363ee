import type { Decision } from '../placement/decide.ts';
import { architecturesOf, isOfKind, type Node } from '../placement/nodes/node.ts';
import { taintsNodes } from '../placement/nodes/pools.ts';
import type { PodTemplate } from '../placement/objects/pod.ts';
import { lacking, tolerationsFor } from '../placement/patch/tolerations.ts';
import { usesTaints } from '../placement/placing.ts';
import { few } from '../placement/reasons.ts';
import type { Settings } from '../placement/settings.ts';
import type { HardSpread } from './workloads/workload.ts';

/*
 * A hard topology spread constraint counts nodes whose taint keeps the pod off, unless it says `nodeTaintsPolicy: Honor` (KEP-3094). A
 * host or a zone with only such nodes stays empty, so all others take no more than `maxSkew` pods. Nothing here decides where a pod may
 * go, and no pods or nodes are counted: `explain`, `plan` and `check` name the constraint and its cure.
 */

/** Returns the architectures whose nodes have the taint, or will have it. */
export function taintedArchitectures(nodes: Iterable<Node>, settings: Pick<Settings, 'mode' | 'taints'>): string[] {
  const isTainted = ({ labels, taints = [] }: Node) =>
    taintsNodes(settings, labels) || taints.some(isOfKind(settings.taints));
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
