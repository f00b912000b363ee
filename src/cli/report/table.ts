import type { Report, ReportedWorkload } from '../../analysis/readiness/report.ts';
import { printable } from '../../kit/printable.ts';
import { READINESS_STATES, type ReadinessState } from '../../placement/readiness/readiness-states.ts';
import { cutMiddle, nameOf, paragraphs, table, titled, wrapped } from '../output.ts';
import { briefReason, bytesText, coresText, headlines, moneyText, newerTagOf, percent } from './texts.ts';

/** The width of sentences where standard output is not a terminal. Tables are as wide as they need there: what is cut is lost. */
const WIDTH = 80;
const NARROWEST = 60;
/** The details of more targets would not be read. */
const MOST_DETAILED = 2;

/** Returns the report for a terminal: what can move, what cannot and why, and which images hold back most. */
export function reportTable(report: Report, columns: number | undefined, namedTargets: boolean): string {
  const width = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(NARROWEST, columns);
  const { targets } = report;
  const detailed = namedTargets ? targets : mostInteresting(report);
  const others = targets.filter((target) => !detailed.includes(target));
  return paragraphs([
    summaryTable(report),
    ...detailed.map((target) => details(report, target, width)),
    groupTable(report, width),
    others.length === 0 ? '' : `--to ${others[0]} shows the workloads and images of another target.\n`,
  ]);
}

/** Returns the targets whose details are shown if none was named: those that the cluster has nodes of, else the furthest ones. */
function mostInteresting({ targets, summary }: Report): string[] {
  const share = (target: string) => summary.targets[target]?.readyShare ?? 0;
  const isThere = (target: string) => (summary.targets[target]?.nodes ?? 0) > 0;
  const order = [...targets].sort(
    (one, other) => Number(isThere(other)) - Number(isThere(one)) || share(other) - share(one),
  );
  return order.slice(0, MOST_DETAILED).sort();
}

function summaryTable({ targets, summary }: Report): string {
  const share = summary.measure === 'cpu' ? 'CPU READY' : 'REPLICAS READY';
  const [ready = '', ...others] = READINESS_STATES.map((state) => state.toUpperCase());
  const rows = targets.map((target) => {
    const { states, readyShare = 0 } = summary.targets[target] ?? {};
    return [target, percent(readyShare), ...READINESS_STATES.map((state) => String(states?.[state].workloads ?? 0))];
  });
  return table(['TARGET', share, `WORKLOADS ${ready}`, ...others], rows);
}

/** The states in the order of their urgency, for lists of what cannot move. */
const IN_THE_WAY: readonly ReadinessState[] = ['blocked', 'missing', 'pinned', 'unknown'];

/** Returns the workloads that are not ready for a target: by state, then those that request most, then by name. */
function inTheWay({ workloads }: Report, target: string): ReportedWorkload[] {
  const rank = (workload: ReportedWorkload) => IN_THE_WAY.indexOf(workload.verdicts[target]?.state ?? 'ready');
  return workloads
    .filter((workload) => rank(workload) >= 0)
    .sort((one, other) => rank(one) - rank(other) || other.cpu - one.cpu || other.replicas - one.replicas);
}

function details(report: Report, target: string, width: number): string {
  const lines = headlines(report, target).flatMap((line) =>
    wrapped(printable(line, 4_000), Number.isFinite(width) ? width : WIDTH, '  '),
  );
  const stuck = inTheWay(report, target).map((workload) => {
    const { state = '', reasons = [] } = workload.verdicts[target] ?? {};
    const [first] = reasons;
    const more = reasons.length > 1 ? ` (and ${reasons.length - 1} more)` : '';
    const why = first === undefined ? '' : `${briefReason(first)}${more}`;
    return [state, nameOf(workload), coresText(workload.cpu), why];
  });
  const ranked = report.summary.targets[target]?.rebuilds ?? [];
  const rebuilds = ranked.map(({ image, frees, readyAfter, saves }) => {
    const newer = newerTagOf(report, image, target);
    const money = saves === undefined ? [] : [moneyText(saves)];
    const what = `${image}${newer === undefined ? '' : ` 🆙 ${newer}`}`;
    return [...money, coresText(frees.cpu), String(frees.workloads), percent(readyAfter), what];
  });
  const header = ['FREES CPU', 'WORKLOADS', 'THEN', 'IMAGE'];
  if (ranked.some(({ saves }) => saves !== undefined)) header.unshift('SAVES');
  const workloadWidth = Math.floor(width * 0.4);
  const stuckHeader = ['STATE', 'WORKLOAD', 'CPU', 'WHY'];
  const best = `Images to build for ${target}, the most useful first.`;
  return paragraphs([
    `${lines.join('\n')}\n`,
    titled(`Not ready for ${target}.`, stuckHeader, fitted(stuckHeader, stuck, width, workloadWidth)),
    titled(best, header, fitted(header, rebuilds, width, width, cutMiddle)),
  ]);
}

function groupTable(report: Report, width: number): string {
  const { targets, groupBy = '', groups = [] } = report;
  const rows = groups.map(({ name, all, targets: found }) => [
    cutEnd(printable(name, 4_000) || '(none)', Math.floor(width / 3)),
    String(all.workloads),
    coresText(all.cpu),
    bytesText(all.memory),
    ...targets.map((target) => percent(found[target]?.readyShare ?? 0)),
  ]);
  const header = ['GROUP', 'WORKLOADS', 'CPU', 'MEMORY', ...targets.map((target) => target.toUpperCase())];
  return titled(`By ${printable(groupBy, 200)}.`, header, rows);
}

/** Returns the rows of a table that is at most `width` wide: the second column is cut to `most`, and the last one to what is left. */
function fitted(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
  most: number,
  cutLast = cutEnd,
): string[][] {
  const last = header.length - 1;
  const cut = rows.map((row) =>
    row.map((cell, column) =>
      column === 1 && column < last ? cutMiddle(printable(cell, 4_000), most) : printable(cell, 4_000),
    ),
  );
  const widths = header
    .slice(0, last)
    .map((title, column) => Math.max(title.length, ...cut.map((row) => (row[column] ?? '').length)));
  const left = Math.max(20, width - widths.reduce((sum, each) => sum + each + 2, 0));
  return cut.map((row) => row.map((cell, column) => (column === last ? cutLast(cell, left) : cell)));
}

function cutEnd(text: string, most: number): string {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join('')}…`;
}
