import type { Comparison, ImageChange, WorkloadNamed } from '../../analysis/readiness/compare.ts';
import { printable } from '../../kit/printable.ts';
import { valueText } from '../output.ts';
import { code, markdownTable } from './markdown.ts';

const LONGEST = 4_000;

/** Returns the comparison in the form that `--output` names. */
export function renderComparison(comparison: Comparison, form: string): string {
  if (form === 'json' || form === 'yaml') return valueText(comparison, form);
  return form === 'markdown' ? markdown(comparison) : lines(comparison);
}

/** Whether a pipeline should stop: an architecture was dropped, or an image is not known. */
export function isFound({ workloads, unknown }: Comparison): boolean {
  return unknown.length > 0 || workloads.some(({ images }) => images.some(({ dropped }) => dropped.length > 0));
}

/** One line for each image that lost or gained an architecture, or that is not known; one line at the end if nothing was dropped. */
function lines(comparison: Comparison): string {
  const { workloads, unknown } = comparison;
  const texts = [
    ...changesOf(comparison).map(({ workload, change }) => `${nameOf(workload)}: ${changeText(change)}`),
    ...unknown.map((each) => `${nameOf(each)}: unknown: ${each.text}`),
  ];
  const counted = isFound(comparison)
    ? []
    : [`${countOf(workloads.length)} compared${apartText(comparison)}: no architecture was dropped.`];
  return [...texts, ...counted].map((text) => `${printable(text, LONGEST)}\n`).join('');
}

/** What was dropped comes before what was only gained. */
function changesOf({ workloads }: Comparison): { workload: WorkloadNamed; change: ImageChange }[] {
  const all = workloads.flatMap((workload) => workload.images.map((change) => ({ workload, change })));
  const drops = ({ change }: (typeof all)[number]) => change.dropped.length > 0;
  return [...all.filter(drops), ...all.filter((each) => !drops(each))];
}

function changeText(change: ImageChange): string {
  const { dropped, gained, containers, after } = change;
  const what = [
    ...(dropped.length > 0 ? [`dropped ${dropped.join(', ')}`] : []),
    ...(gained.length > 0 ? [`gained ${gained.join(', ')}`] : []),
  ];
  return `${what.join(', ')}: ${after.image} (${containers.join(', ')}) runs on ${setText(after.architectures)}; ${beforeText(change)}`;
}

function beforeText({ before, within = [] }: ImageChange): string {
  if (before === undefined) return `the workload ran on ${setText(within)} without it`;
  return `${before.image} ran on ${setText(before.architectures)}`;
}

function setText(architectures: readonly string[]): string {
  return architectures.length === 0 ? 'no architecture' : architectures.join(', ');
}

function markdown(comparison: Comparison): string {
  const { workloads, unknown } = comparison;
  const title = '### Architectures: before and after\n';
  const rows = [
    ...changesOf(comparison).map(({ workload, change: { before, within, after, dropped, gained } }) => [
      dropped.length > 0 ? '❌' : '➕',
      code(nameOf(workload)),
      before === undefined
        ? `_none_ (${setText(within ?? [])})`
        : `${code(before.image)} (${setText(before.architectures)})`,
      `${code(after.image)} (${setText(after.architectures)})`,
      dropped.join(', '),
      gained.join(', '),
    ]),
    ...unknown.map((each) => {
      const said = `${code(each.image)}: ${code(each.text)}`;
      return ['❔', code(nameOf(each)), each.when === 'before' ? said : '', each.when === 'after' ? said : '', '', ''];
    }),
  ];
  const table =
    rows.length === 0 ? '' : `\n${markdownTable(['', 'object', 'before', 'after', 'dropped', 'gained'], rows)}`;
  const end = isFound(comparison)
    ? ''
    : `\n✅ ${countOf(workloads.length)} compared${apartText(comparison)}: no architecture was dropped.\n`;
  return `${title}${table}${end}`;
}

/** Returns `, 1 new, 2 gone`; empty if the same workloads are in both. */
function apartText({ added, removed }: Comparison): string {
  const parts = [
    ...(added.length > 0 ? [`${added.length} new`] : []),
    ...(removed.length > 0 ? [`${removed.length} gone`] : []),
  ];
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function nameOf({ kind, namespace, name }: WorkloadNamed): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

function countOf(workloads: number): string {
  return workloads === 1 ? '1 workload' : `${workloads} workloads`;
}
