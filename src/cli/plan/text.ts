import { isDeepStrictEqual } from 'node:util';
import { byName, type JudgedWorkload } from '../../analysis/workloads/overview.ts';
import { isObject } from '../../kit/json.ts';
import type { Operation } from '../../kit/json-patch.ts';
import { ARCHITECTURE_GATE } from '../../names.ts';
import type { NamedObject } from '../../placement/objects/kinds.ts';
import { describeHeld, few } from '../../placement/reasons.ts';
import { PART_TEXTS } from '../../placement/refused-parts.ts';
import { paragraphs, table, titled, wrapped } from '../output.ts';
import type { Paint } from '../paint.ts';
import type { Plan, Seen } from './plan-shape.ts';

/** How `plan` is printed. */
export type TextOptions = {
  /** The lines with the counts, in front of everything; empty: none. */
  readonly head: readonly string[];
  readonly byPod: boolean;
  readonly isWide: boolean;
  /** The taint of the configuration: in a row for a workload, its key and effect are left out of the detail. */
  readonly taint: { readonly key: string; readonly effect: string };
  /** Notes about architectures that no node has. */
  readonly absent: readonly string[];
  readonly columns: number | undefined;
  /** The last lines. */
  readonly closing: readonly string[];
  readonly paint: Paint;
};

/** In front of the tables of a group. */
const INDENT = '  ';

/** One row of a table: objects of one workload of which the same is said. */
type PlanRow = { readonly named: NamedObject; readonly pods: number; readonly cells: readonly string[] };

/** Returns the plan as tables. */
export function planText(plan: Plan, seen: Seen, options: TextOptions): string {
  const { head, byPod, isWide, taint, absent, columns, closing, paint } = options;
  const { changes, held, pools } = plan;
  const headings = [...new Set(held.map((entry) => seen.headingOf(entry)))];
  /** Returns a table of objects: by workload, with the number of pods, or by object. */
  const objects = <T extends NamedObject>(
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
  return paragraphs([
    head.map((line) => `${headLine(line, paint)}\n`).join(''),
    workloadsText(plan.workloads, isWide, columns),
    changes.length === 0
      ? ''
      : objects(byPod ? changes : alikeNodes(changes, isWide), ['ACTION', 'DETAIL'], (change) => [
          change.action,
          byPod
            ? describePatch(change.patch, change.kind)
            : brief('detail' in change ? change.detail : describePatch(change.patch, change.kind), taint),
        ]),
    titled(
      'New pods would require, by the review of their creation. Pods that exist keep what they have.',
      ['KIND', 'NAMESPACE', 'NAME', 'REQUIRES'],
      plan.newPods.map(({ kind, namespace = '', name, requires }) => [
        ...[kind, namespace, name],
        requires.map(({ key, values }) => `${key} in (${values.join(', ')})`).join(', '),
      ]),
      columns,
    ),
    ...headings.map((heading) => {
      const entries = held.filter((entry) => seen.headingOf(entry) === heading);
      const cells = (entry: (typeof entries)[number]) => [seen.stateOf(entry), describeHeld(entry.images)];
      return `${heading}\n${objects(entries, ['STATE', 'IMAGES'], cells)}`;
    }),
    unknownImages(plan, seen, { byPod, isWide, columns }),
    titled(
      'Refused by the API server in a dry run: allow this before archaware is installed (docs/security.md, "Other admission plug-ins").',
      ['KIND', 'NAMESPACE', 'NAME', 'PART', 'REFUSAL'],
      plan.refused.map(({ kind, namespace = '', name, parts, message }) => [
        ...[kind, namespace, name],
        parts.map((part) => PART_TEXTS[part]).join(', '),
        message,
      ]),
      columns,
    ),
    titled(
      'NodePools with problems.',
      ['NODEPOOL', 'SEVERITY', 'PROBLEM'],
      pools.map(({ name, severity, problem }) => [name, severity, problem]),
      columns,
    ),
    absent.length === 0
      ? ''
      : `Configured architectures that no node has.\n${absent.map((note) => `${note}\n`).join('')}`,
    closingText(closing, options),
  ]);
}

/** Marks a line of the counts: its number is good where it is 0. */
function headLine(line: string, paint: Paint): string {
  const [, count, what] = /^ {2}(\d+) (on a wrong node now|would be Pending|images? unknown)/.exec(line) ?? [];
  if (count === undefined || what === undefined || !paint.marks) return line;
  const tone = count === '0' ? 'good' : what.startsWith('on a wrong') ? 'bad' : 'warning';
  return `${paint.mark(tone)} ${count === '0' ? line.slice(2) : paint.tone(tone, line.slice(2))}`;
}

/** Returns the last lines; the first of them in bold, and commands as they are, to be copied. */
function closingText(lines: readonly string[], { columns, paint }: Pick<TextOptions, 'columns' | 'paint'>): string {
  return lines
    .flatMap((line, index) => {
      const isCommand = line.startsWith('  ');
      const parts = columns === undefined || isCommand ? [line] : wrapped(line, columns, '  ');
      return index === 0 ? parts.map(paint.bold) : parts;
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** Counts the images that are not known: those whose lookup failed, and those that are still looked up. */
export function unknownCount({ waiting, unresolved }: Pick<Plan, 'waiting' | 'unresolved'>): number {
  return new Set([...unresolved.map(({ image }) => image), ...waiting.flatMap(({ images }) => images)]).size;
}

/**
 * Returns the images that are not known and who uses them, one table for each registry and reason: when a registry is down, all
 * of its images have the same reason.
 */
function unknownImages(
  { waiting, unresolved }: Plan,
  seen: Seen,
  { byPod, isWide, columns }: Pick<TextOptions, 'byPod' | 'isWide' | 'columns'>,
): string {
  const failed = new Map(unresolved.map((each) => [each.image, each]));
  const images = new Set([...failed.keys(), ...waiting.flatMap((entry) => entry.images)]);
  const groups = new Map<string, string[][]>();
  for (const image of [...images].sort()) {
    const users = seen.uses.filter((entry) => entry.images.includes(image));
    const names = users.map((entry) => {
      const { kind, namespace = '', name } = byPod ? entry : seen.workloadOf(entry);
      return `${kind} ${namespace}/${name}`;
    });
    const distinct = [...new Set(names)];
    const { code, message = '', registry = '' } = failed.get(image) ?? {};
    const title =
      code === undefined ? 'pending: the lookup has not ended' : `${code} at ${registry || 'no registry'}: ${message}`;
    groups.set(title, [...(groups.get(title) ?? []), [isWide ? distinct.join(', ') : few(distinct), image]]);
  }
  if (groups.size === 0) return '';
  const sorted = [...groups].sort(([one], [other]) => (one < other ? -1 : 1));
  const texts = sorted.map(([title, rows]) => {
    // The image is the last column, so that it stays whole at a terminal: it is what a reader looks for.
    const lines = table(['USED BY', 'IMAGE'], rows, columns === undefined ? undefined : columns - INDENT.length);
    return table([title], [], columns) + lines.replaceAll(/^(?=.)/gm, INDENT);
  });
  return `Unknown images.\n${texts.join('')}`;
}

const REACH: Readonly<Record<JudgedWorkload['reach'], string>> = {
  anywhere: 'every architecture',
  limited: '',
  nowhere: 'no node',
  unknown: 'unknown',
  'left-alone': 'left alone',
};

/** Returns the table of workloads that are on a wrong node, Pending or on no node; with `isWide` of all workloads. */
function workloadsText(all: readonly JudgedWorkload[], isWide: boolean, columns: number | undefined): string {
  const isWrong = ({ onWrongNode, pendingAtRestart, pendingNow, reach }: JudgedWorkload) =>
    onWrongNode || pendingAtRestart || pendingNow || reach === 'nowhere';
  const shown = isWide ? all : all.filter(isWrong);
  const rows = shown.map((workload) => {
    const { kind, namespace, name, reach, architectures = [], why } = workload;
    const runsOn = reach === 'limited' ? architectures.join(' ') : REACH[reach];
    return [kind, namespace, name, ...(isWide ? [runsOn] : []), statesOf(workload).join('; '), why];
  });
  const header = ['KIND', 'NAMESPACE', 'NAME', ...(isWide ? ['RUNS ON'] : []), 'STATE', 'WHY'];
  const title = isWide ? 'All workloads.' : 'Workloads on a wrong node, Pending, or without a node that can run them.';
  return titled(title, header, rows, columns);
}

function statesOf({ onWrongNode, pendingAtRestart, pendingNow, reach }: JudgedWorkload): string[] {
  const states = [
    ...(onWrongNode ? ['on a wrong node'] : []),
    ...(pendingNow ? ['Pending'] : []),
    ...(pendingAtRestart ? ['Pending at its next restart'] : []),
  ];
  return states.length === 0 && reach === 'nowhere' ? ['no node can run it'] : states;
}

/** Joins nodes that get the same taint or labels into one entry; everything else stays as it is. */
function alikeNodes(changes: Plan['changes'], isWide: boolean) {
  const nodes = new Map<string, { action: string; detail: string; names: string[] }>();
  for (const { kind, name, action, patch } of changes) {
    if (kind !== 'Node') continue;
    const detail = describePatch(patch, kind);
    const key = `${action} ${detail}`;
    const alike = nodes.get(key) ?? { action, detail, names: [] };
    nodes.set(key, { ...alike, names: [...alike.names, name] });
  }
  return [
    ...[...nodes.values()].map(({ names, ...rest }) => ({
      ...{ kind: 'Node', name: isWide ? names.join(', ') : few(names), patch: [] },
      ...rest,
    })),
    ...changes.filter(({ kind }) => kind !== 'Node'),
  ];
}

/** Returns `amd64 -arm64` for `supported-arch=amd64:NoSchedule -supported-arch=arm64:NoSchedule`; other words stay as they are. */
function brief(detail: string, { key, effect }: TextOptions['taint']): string {
  const [begin, end] = [`${key}=`, `:${effect}`];
  const short = (word: string) =>
    word.startsWith(begin) && word.endsWith(end) ? word.slice(begin.length, -end.length) : word;
  return detail
    .split(' ')
    .map((word) => (word.startsWith('-') ? `-${short(word.slice(1))}` : short(word)))
    .join(' ');
}

function grouped<T extends NamedObject>(
  entries: readonly T[],
  nameOf: (entry: T) => NamedObject,
  cellsOf: (entry: T) => readonly string[],
): PlanRow[] {
  const rows = new Map<string, PlanRow>();
  for (const entry of entries) {
    const [named, cells] = [nameOf(entry), cellsOf(entry)];
    const key = JSON.stringify([named.kind, named.namespace, named.name, cells]);
    const pods = (rows.get(key)?.pods ?? 0) + (entry.kind === 'Pod' ? 1 : 0);
    rows.set(key, { named, pods, cells });
  }
  // Nodes first: their taints are why the rest is needed.
  const rank = ({ named }: PlanRow) => (named.kind === 'Node' ? 0 : 1);
  return [...rows.values()].sort(
    (one, other) =>
      rank(one) - rank(other) ||
      byName(one.named, other.named) ||
      (one.cells.join(' ') < other.cells.join(' ') ? -1 : 1),
  );
}

const LABELS = '/metadata/labels';

type PatchedChange = Exclude<Operation, { op: 'test' }>;

/**
 * Returns what a patch adds and removes: `supported-arch=amd64:NoSchedule`, `-example.com/gpu`, `kubernetes.io/arch in (amd64)`. A
 * patch that replaces a list tests the old one first, so the text has only what differs. `kind`: of the object that is patched.
 */
export function describePatch(patch: readonly Operation[], kind: string): string {
  const before = new Map(
    patch.flatMap((operation) => (operation.op === 'test' ? [[operation.path, operation.value]] : [])),
  );
  const changes = patch.flatMap((operation): PatchedChange[] => (operation.op === 'test' ? [] : [operation]));
  const texts = changes.flatMap((change) => {
    if (change.path.startsWith(LABELS)) return describeLabels(change);
    if (change.path.startsWith('/metadata/')) return [];
    if (change.path.startsWith('/spec/schedulingGates')) return `-${ARCHITECTURE_GATE}`;
    return describeLists(before.get(change.path), change.op === 'remove' ? undefined : change.value);
  });
  if (texts.length > 0) return texts.join(' ');
  if (changes.some(({ path }) => !path.startsWith('/metadata/'))) return 'removes what archaware wrote';
  const verb = changes.every(({ op }) => op === 'remove') ? 'removes' : 'updates';
  return `${verb} archaware's record${kind === 'DaemonSet' ? ', no rollout' : ''}`;
}

/** Returns `example.com/gpu=true`, or `-example.com/gpu` for a removed label; several if the node had no labels before. */
function describeLabels(change: PatchedChange): string[] {
  const label = change.path.slice(LABELS.length + 1).replaceAll('~1', '/');
  if (change.op === 'remove') return [`-${label}`];
  const labels = isObject(change.value) ? change.value : { [label]: change.value };
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`);
}

function describeLists(before: unknown, after: unknown): string[] {
  if (!Array.isArray(before)) return describeValue(after);
  const now: readonly unknown[] = Array.isArray(after) ? after : [];
  const isIn = (list: readonly unknown[]) => (entry: unknown) => list.some((other) => isDeepStrictEqual(entry, other));
  const added = now.filter((entry) => !isIn(before)(entry));
  const gone = before.filter((entry) => !isIn(now)(entry));
  return [...added.flatMap(describeValue), ...gone.flatMap(describeValue).map((text) => `-${text}`)];
}

function describeValue(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(describeValue);
  if (!isObject(value)) return [];
  const { key, effect, values } = value;
  if (Array.isArray(values)) return [`${key} in (${values.join(', ')})`];
  if (effect === undefined && key === undefined) return Object.values(value).flatMap(describeValue);
  return [`${key ?? '*'}${value.value ? `=${value.value}` : ''}${effect ? `:${effect}` : ''}`];
}
