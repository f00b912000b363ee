import { GUARD_POLICY } from '../names.ts';
import type { CleanOutcome, Left } from './outcomes.ts';
import { type CarryingPod, keepsTolerations, type TraceInventory } from './traces.ts';

/** The rows of a table, without its header. */
export type Rows = readonly (readonly string[])[];

/** How many objects of the same kind and reason the table shows. Machine-readable output has all. */
const MOST_SHOWN = 20;

/** The header of the table of steps. */
export const PLAN_HEADER = ['STEP', 'WHAT', 'COUNT', 'DO'] as const;

/** Returns the rows of the table of steps, with the number of objects for each step. */
export function planRows(inventory: TraceInventory, how: 'restart' | 'keep'): Rows {
  const { configurations, gated, nodes, daemonSets, unrecorded, pods, recorded, reports } = inventory;
  const count = (kind: CarryingPod['cleaning']['kind']) => pods.filter(({ cleaning }) => cleaning.kind === kind).length;
  const restarted = pods.filter(({ cleaning }) => cleaning.kind === 'restart').map(({ owner }) => owner?.uid);
  const podRows: [number, string][] =
    how === 'keep'
      ? [
          [pods.length - count('rolls'), 'keep (tolerations and affinity are harmless now)'],
          [count('rolls'), 'replaced by their DaemonSet'],
        ]
      : [
          [restarted.length, `restart their Deployments and StatefulSets (${new Set(restarted).size})`],
          [count('rolls'), 'replaced by their DaemonSet'],
          [count('keep'), 'keep (tolerations and affinity are harmless now)'],
        ];
  const shown = podRows.filter(([number], index) => index === 0 || number > 0);
  const row = (step: string, what: string, number: number, verb: string) => [step, what, String(number), verb];
  const deletion = configurations.some(keepsTolerations) ? `delete (${GUARD_POLICY} after step 3)` : 'delete';
  const keep = 'keep (their authors may have written the tolerations)';
  return [
    row('1', 'admission configurations', configurations.length, deletion),
    row('2', 'gated pods', gated.length, 'remove the gate'),
    row('3', 'nodes', nodes.length, 'remove the taint and labels'),
    row('4', 'DaemonSets', daemonSets.length, 'remove the tolerations (rolls them)'),
    ...(unrecorded.length > 0 ? [row('4', 'DaemonSets without a record', unrecorded.length, keep)] : []),
    ...shown.map(([number, verb]) => row('5', 'pods with tolerations or affinity', number, verb)),
    ...(recorded.length > 0
      ? [row('6', 'pods with a record of archaware', recorded.length, 'remove the annotation')]
      : []),
    ...(reports.length > 0
      ? [row('6', 'namespaces with a report of archaware', reports.length, 'remove the annotation')]
      : []),
  ];
}

/** The header of the closing table. */
export const RESULT_HEADER = ['WHAT', 'REMOVED', 'LEFT'] as const;

/**
 * Returns the closing table. In each row, REMOVED and LEFT add up to all that was found. `unlisted`: the number of pods that keep
 * harmless tolerations, affinity or annotations because of `--pods keep`.
 */
export function resultRows({ removed, remaining, kept: listed }: CleanOutcome, unlisted: number): Rows {
  const keptSets = listed.filter(({ kind }) => kind === 'DaemonSet').length;
  const kept = listed.length - keptSets + unlisted;
  const rows: [string, number, number][] = [
    ['admission configurations', removed.configurations, remaining.configurations],
    ['gates of pods', removed.gates, remaining.gates],
    ['nodes with taint or labels', removed.nodes, remaining.nodes],
    ['labels of nodes', removed.labels, remaining.labels],
    ['tolerations of DaemonSets', removed.daemonSets, remaining.daemonSets],
  ];
  if (keptSets > 0) rows.push(['tolerations of DaemonSets, kept', 0, keptSets]);
  if (kept === 0 || removed.pods + remaining.pods > 0) {
    rows.push(['pods with tolerations or affinity', removed.pods, remaining.pods]);
  }
  if (kept > 0) rows.push(['pods with tolerations or affinity, kept', 0, kept]);
  rows.push(['annotations of pods', removed.annotations, remaining.annotations]);
  if (removed.reports + remaining.reports > 0) {
    rows.push(['annotations of namespaces', removed.reports, remaining.reports]);
  }
  if (remaining.controllers > 0) rows.push(['controllers that run', 0, remaining.controllers]);
  return rows.map(([what, gone, left]) => [what, String(gone), String(left)]);
}

/** The header of the table of objects that are left. */
export const LEFT_HEADER = ['KIND', 'NAMESPACE', 'NAME', 'REASON'] as const;

/** The same for a dry run. */
export const PLANNED_HEADER = ['KIND', 'NAMESPACE', 'NAME', 'DO'] as const;

/** Returns the rows of objects that are left or kept; of many similar ones only the first. */
export function leftRows(left: readonly Left[]): Rows {
  const seen = new Map<string, number>();
  const rows: string[][] = [];
  for (const { kind, namespace, name, reason } of left) {
    const alike = `${kind} ${reason}`;
    const before = seen.get(alike) ?? 0;
    seen.set(alike, before + 1);
    if (before < MOST_SHOWN) rows.push([kind, namespace ?? '-', name, reason]);
  }
  for (const [alike, count] of seen) {
    if (count <= MOST_SHOWN) continue;
    const [kind = '', ...reason] = alike.split(' ');
    rows.push([kind, '-', `and ${count - MOST_SHOWN} more (--output json has all)`, reason.join(' ')]);
  }
  return rows;
}
