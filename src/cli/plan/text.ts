import { describeHeld, few } from '../../placement/reasons.ts';
import { table } from '../output.ts';
import { describePatch } from './patch-text.ts';
import type { Named, Plan, Seen } from './shape.ts';

/** How `plan` is printed. */
export type TextOptions = {
  /** The lines with the counts, in front of everything; empty: none. */
  readonly head: readonly string[];
  /** Prints one row for each pod instead of one for each workload. */
  readonly byPod: boolean;
  /** The taint of the configuration: in a row for a workload, its key and effect are left out of the detail. */
  readonly taint: { readonly key: string; readonly effect: string };
  /** Notes about architectures that no node has. */
  readonly absent: readonly string[];
  readonly columns: number | undefined;
};

/** One row of a table: objects of one workload of which the same is said. */
type Row = { readonly named: Named; readonly pods: number; readonly cells: readonly string[] };

/** Returns the plan as tables. */
export function planText(plan: Plan, seen: Seen, { head, byPod, taint, absent, columns }: TextOptions): string {
  const { changes, held, pools } = plan;
  const headings = [...new Set(held.map((entry) => seen.headingOf(entry)))];
  /** Returns a table of objects: by workload, with the number of pods, or by object. */
  const objects = <T extends Named>(
    entries: readonly T[],
    header: readonly string[],
    cellsOf: (entry: T) => string[],
  ) => {
    const rows = grouped(entries, byPod ? (entry) => entry : seen.workloadOf, cellsOf);
    const counted = byPod ? [] : ['PODS'];
    return table(
      ['KIND', 'NAMESPACE', 'NAME', ...counted, ...header],
      rows.map(({ named: { kind, namespace = '', name }, pods, cells }) => [
        ...[kind, namespace, name],
        ...(byPod ? [] : [pods === 0 || kind === 'Pod' ? '' : String(pods)]),
        ...cells,
      ]),
      columns,
    );
  };
  const sections = [
    head.map((line) => `${line}\n`).join(''),
    changes.length === 0
      ? 'Nothing to change.\n'
      : objects(byPod ? changes : alikeNodes(changes), ['ACTION', 'DETAIL'], (change) => [
          change.action,
          byPod
            ? describePatch(change.patch)
            : brief('detail' in change ? change.detail : describePatch(change.patch), taint),
        ]),
    ...headings.map((heading) => {
      const entries = held.filter((entry) => seen.headingOf(entry) === heading);
      const state = (entry: Named) =>
        entry.kind !== 'Pod' ? '' : seen.isBound(entry) ? 'runs; Pending at its next restart' : 'Pending';
      return `${heading}\n${objects(entries, ['STATE', 'IMAGES'], (entry) => [state(entry), describeHeld(entry.images)])}`;
    }),
    unknownImages(plan, seen, byPod, columns),
    section(
      'NodePools with problems.',
      ['NODEPOOL', 'SEVERITY', 'PROBLEM'],
      pools.map(({ name, severity, problem }) => [name, severity, problem]),
      columns,
    ),
    absent.length === 0
      ? ''
      : `Configured architectures that no node has.\n${absent.map((note) => `${note}\n`).join('')}`,
  ];
  return sections.filter((text) => text !== '').join('\n');
}

/** Counts the images that are not known: those whose lookup failed, and those that are still looked up. */
export function unknownCount({ waiting, unresolved }: Pick<Plan, 'waiting' | 'unresolved'>): number {
  return new Set([...unresolved.map(({ image }) => image), ...waiting.flatMap(({ images }) => images)]).size;
}

/** Returns one table of the images that are not known: why, and which workloads wait for them. */
function unknownImages({ waiting, unresolved }: Plan, seen: Seen, byPod: boolean, columns: number | undefined): string {
  const failed = new Map(unresolved.map((each) => [each.image, each]));
  const images = new Set([...failed.keys(), ...waiting.flatMap((entry) => entry.images)]);
  const rows = [...images].map((image) => {
    const waits = waiting.filter((entry) => entry.images.includes(image));
    const names = waits.map((entry) => {
      const { kind, namespace = '', name } = byPod ? entry : seen.workloadOf(entry);
      return `${kind} ${namespace}/${name}`;
    });
    const { code = 'pending', message = 'its lookup has not ended' } = failed.get(image) ?? {};
    return [image, code, few([...new Set(names)]) || 'nobody', message];
  });
  return section('Unknown images.', ['IMAGE', 'CODE', 'WAITS FOR IT', 'WHY'], rows, columns);
}

/** Joins nodes that get the same taint or labels into one entry; everything else stays as it is. */
function alikeNodes(changes: Plan['changes']) {
  const nodes = new Map<string, { action: string; detail: string; names: string[] }>();
  for (const { kind, name, action, patch } of changes) {
    if (kind !== 'Node') continue;
    const detail = describePatch(patch);
    const key = `${action} ${detail}`;
    const alike = nodes.get(key) ?? { action, detail, names: [] };
    nodes.set(key, { ...alike, names: [...alike.names, name] });
  }
  return [
    ...[...nodes.values()].map(({ names, ...rest }) => ({ kind: 'Node', name: few(names), patch: [], ...rest })),
    ...changes.filter(({ kind }) => kind !== 'Node'),
  ];
}

/** Returns `amd64 arm64` for `supported-arch=amd64:NoSchedule supported-arch=arm64:NoSchedule`; other words stay as they are. */
function brief(detail: string, { key, effect }: TextOptions['taint']): string {
  const [begin, end] = [`${key}=`, `:${effect}`];
  const isOfTaint = (word: string) => word.startsWith(begin) && word.endsWith(end);
  return detail
    .split(' ')
    .map((word) => (isOfTaint(word) ? word.slice(begin.length, -end.length) : word))
    .join(' ');
}

function grouped<T extends Named>(
  entries: readonly T[],
  nameOf: (entry: T) => Named,
  cellsOf: (entry: T) => readonly string[],
): Row[] {
  const rows = new Map<string, Row>();
  for (const entry of entries) {
    const [named, cells] = [nameOf(entry), cellsOf(entry)];
    const key = JSON.stringify([named.kind, named.namespace, named.name, cells]);
    const pods = (rows.get(key)?.pods ?? 0) + (entry.kind === 'Pod' ? 1 : 0);
    rows.set(key, { named, pods, cells });
  }
  return [...rows.values()];
}

function section(
  title: string,
  header: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number | undefined,
): string {
  return rows.length === 0 ? '' : `${title}\n${table(header, rows, columns)}`;
}
