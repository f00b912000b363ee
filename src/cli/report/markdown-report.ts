import { READINESS_STATES, type Report } from '../../placement/readiness/report.ts';
import { code, markdownTable } from '../markdown.ts';
import { coresText, groupRows, headlines, inTheWay, newerTagOf, percent, totalRows, workloadText } from './texts.ts';

/** Rows of a table; a comment of a forge is bounded. */
const MOST_ROWS = 200;

/** Returns the report as Markdown, for an issue or a comment. */
export function reportMarkdown(report: Report): string {
  const { targets, summary, groups = [], groupBy = '' } = report;
  return [
    '## Readiness for other architectures\n',
    markdownTable(
      ['target', `${summary.measure === 'cpu' ? 'CPU' : 'replicas'} ready`, ...READINESS_STATES],
      totalRows(report),
    ),
    ...targets.map((target) => section(report, target)),
    ...(groups.length === 0
      ? []
      : [
          `### By ${code(groupBy)}\n`,
          cut(['group', 'workloads', 'CPU', 'memory', ...targets], groupRows(report, code)),
        ]),
    ...summary.unread.map(({ text }) => `Not complete: ${code(text)}\n`),
  ].join('\n');
}

function section(report: Report, target: string): string {
  const stuck = inTheWay(report, target).map((workload) => {
    const { state = '', reasons = [] } = workload.verdicts[target] ?? {};
    return [
      state,
      code(workloadText(workload)),
      coresText(workload.cpu),
      reasons.map(({ text }) => code(text)).join('<br>'),
    ];
  });
  const rebuilds = (report.summary.targets[target]?.rebuilds ?? []).map(({ image, frees, readyAfter }) => {
    const newer = newerTagOf(report, image, target);
    return [
      code(image),
      coresText(frees.cpu),
      String(frees.workloads),
      percent(readyAfter),
      newer === undefined ? '' : `🆙 ${code(newer)}`,
    ];
  });
  return [
    `### ${target}\n`,
    `${headlines(report, target).join('\n')}\n`,
    ...(stuck.length === 0 ? [] : [cut(['state', 'workload', 'CPU', 'why'], stuck)]),
    ...(rebuilds.length === 0
      ? []
      : [
          'Images to build, the most useful first:\n',
          cut(['image', 'frees (cores)', 'workloads', 'ready then', 'newer tag'], rebuilds),
        ]),
  ].join('\n');
}

function cut(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const more = rows.length - MOST_ROWS;
  return markdownTable(header, rows.slice(0, MOST_ROWS)) + (more > 0 ? `\nand ${more} more\n` : '');
}
