import { READINESS_STATES, type Report } from '../../placement/readiness/report.ts';
import { table } from '../output.ts';
import { newerText } from './table.ts';
import { bytesText, coresText, groupRows } from './texts.ts';

/** Returns everything as tables whose lines are as long as they need. */
export function reportWide(report: Report): string {
  const { targets, summary, workloads, images, groups = [], groupBy = '' } = report;
  const totals = targets.flatMap((target) =>
    READINESS_STATES.map((state) => {
      const tally = summary.targets[target]?.states[state];
      const { workloads: count = 0, replicas = 0, cpu = 0, memory = 0 } = tally ?? {};
      return [target, state, String(count), String(replicas), coresText(cpu), bytesText(memory)];
    }),
  );
  const rows = workloads.map((workload) => [
    workload.namespace,
    workload.kind,
    workload.name,
    String(workload.replicas),
    coresText(workload.cpu),
    bytesText(workload.memory),
    ...targets.map((target) => workload.verdicts[target]?.state ?? ''),
    targets.flatMap((target) => reasonsOf(workload.verdicts[target]?.reasons, target, targets.length > 1)).join('; '),
  ]);
  const blocking = images.map(({ image, platforms, error, used, blocking: by }) => [
    String(used.workloads),
    ...targets.map((target) => coresText(by[target]?.blocks.cpu ?? 0)),
    ...targets.map((target) => coresText(by[target]?.alone.cpu ?? 0)),
    error === undefined ? platforms.join(' ') : `error: ${error.code}`,
    `${image}${targets.map((target) => newerText(by[target]?.newer)).join('')}`,
  ]);
  const upper = targets.map((target) => target.toUpperCase());
  return [
    table(['TARGET', 'STATE', 'WORKLOADS', 'REPLICAS', 'CPU', 'MEMORY'], totals),
    table(['NAMESPACE', 'KIND', 'NAME', 'REPLICAS', 'CPU', 'MEMORY', ...upper, 'WHY'], rows),
    table(
      [
        'WORKLOADS',
        ...upper.map((target) => `BLOCKS ${target}`),
        ...upper.map((target) => `ALONE ${target}`),
        'PLATFORMS',
        'IMAGE',
      ],
      blocking,
    ),
    ...(groups.length === 0
      ? []
      : [
          table(
            [groupBy.toUpperCase(), 'WORKLOADS', 'CPU', 'MEMORY', ...upper],
            groupRows(report, (name) => name),
          ),
        ]),
  ].join('\n');
}

function reasonsOf(reasons: readonly { text: string }[] = [], target: string, isNamed: boolean): string[] {
  return reasons.map(({ text }) => (isNamed ? `${target}: ${text}` : text));
}
