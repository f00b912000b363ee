import type { Inventory, Left } from '../controllers/undo.ts';
import type { CarryingPod } from '../controllers/undo-pods.ts';
import type { Context } from './context.ts';
import { printValue, table } from './output.ts';

/** How many of each were removed. */
export type Counts = {
  configurations: number;
  gates: number;
  nodes: number;
  labels: number;
  daemonSets: number;
  pods: number;
  annotations: number;
};

/** What `clean` is about to do, as a table of its steps. */
export function describePlan(inventory: Inventory, pods: readonly CarryingPod[], how: string): string {
  const replaced = pods.filter(({ undo }) => undo.kind === 'replace').length;
  const rolled = pods.filter(({ undo }) => undo.kind === 'rolls').length;
  const left = pods.length - replaced - rolled;
  const verb = how === 'keep' ? 'keep (their tolerations are harmless then)' : how;
  const rows = [
    ['1', 'admission configurations', String(inventory.configurations.length), 'delete'],
    ['2', 'gated pods', String(inventory.gated.length), 'take our gate away'],
    ['3', 'nodes', String(inventory.nodes.length), 'take our taint and labels away'],
    [
      '4',
      'DaemonSets',
      String(inventory.daemonSets.length),
      'take our tolerations from the template (this rolls them)',
    ],
    ['5', 'pods with our tolerations', String(replaced), verb],
    ...(rolled > 0 ? [['', '', String(rolled), 'replaced by their DaemonSet']] : []),
    ...(inventory.recorded.length > 0
      ? [['6', 'pods with our affinity', String(inventory.recorded.length), 'take our annotation away']]
      : []),
    ...(left > 0 ? [['', '', String(left), 'left, as nothing would bring them back (--all-pods)']] : []),
  ];
  return table(['STEP', 'WHAT', 'COUNT', 'DO'], rows).trimEnd();
}

/** What a terminal is asked before pods are replaced. */
export function podQuestion(pods: readonly CarryingPod[], how: string): string {
  const count = pods.filter(({ undo }) => undo.kind === 'replace').length;
  return `Now ${how} ${count} pod(s) whose controllers bring them back without our tolerations?`;
}

/** Everything of ours that is still there, with one reason for all of it. */
export function leftNow(inventory: Inventory, pods: readonly CarryingPod[], how: string, reason: string): Left[] {
  return [
    ...inventory.configurations.map(({ kind, namespace, name }) => ({
      kind,
      ...(namespace === undefined ? {} : { namespace }),
      name,
      reason,
    })),
    ...[...inventory.gated, ...inventory.recorded].map(({ namespace, name }) => ({
      kind: 'Pod',
      namespace,
      name,
      reason,
    })),
    ...inventory.nodes.map(({ name }) => ({ kind: 'Node', name, reason })),
    ...inventory.daemonSets.map(({ namespace, name }) => ({ kind: 'DaemonSet', namespace, name, reason })),
    ...(how === 'keep' ? [] : pods.map(({ pod: { namespace, name } }) => ({ kind: 'Pod', namespace, name, reason }))),
  ];
}

/** Nothing removed. */
export function emptyCounts(): Counts {
  return { configurations: 0, gates: 0, nodes: 0, labels: 0, daemonSets: 0, pods: 0, annotations: 0 };
}

/** The closing table, or the same for machines. */
export function report(result: { removed: Counts; left: readonly Left[] }, output: Context['output']): void {
  if (output !== 'table') {
    printValue(result, output);
    return;
  }
  const count = (kind: string) => result.left.filter((entry) => entry.kind === kind).length;
  const { removed, left } = result;
  const others = left.length - count('Node') - count('DaemonSet') - count('Pod');
  process.stdout.write(
    table(
      ['WHAT', 'REMOVED', 'LEFT'],
      [
        ['admission configurations', String(removed.configurations), String(others)],
        ['gates of pods', String(removed.gates), ''],
        ['nodes with our taint or labels', String(removed.nodes), String(count('Node'))],
        ['labels of nodes', String(removed.labels), ''],
        ['tolerations of DaemonSets', String(removed.daemonSets), String(count('DaemonSet'))],
        ['pods with tolerations', String(removed.pods), String(count('Pod'))],
      ],
    ),
  );
  if (left.length === 0) return;
  const rows = left.map(({ kind, namespace, name, reason }) => [kind, namespace ?? '', name, reason]);
  process.stdout.write(`\nLeft.\n${table(['KIND', 'NAMESPACE', 'NAME', 'REASON'], rows)}`);
}
