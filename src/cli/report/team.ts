import { MOST_WITHOUT_NODE } from '../../analysis/readiness/inventory.ts';
import type { Report, ReportedWorkload } from '../../analysis/readiness/report.ts';
import { printable } from '../../kit/printable.ts';
import type { NamespaceReport } from '../../placement/objects/namespace.ts';
import { few } from '../../placement/reasons.ts';
import { ageText, counted, paragraphs, table, titled } from '../output.ts';
import { briefReason } from './texts.ts';

/** What the text for a team needs beside the report. */
export type TeamOptions = {
  readonly namespace: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** What the leader reported in the namespace; undefined: nothing. */
  readonly seen: NamespaceReport | undefined;
};

/** More pods than this are counted. */
const MOST_WAITING = 20;

/** Returns the report for the people of one namespace: what runs where, what waits, what is held back by which image. */
export function teamText(report: Report, { namespace, now, seen }: TeamOptions, columns: number | undefined): string {
  const { workloads, waiting = [], targets } = report;
  const policies = [...new Set(workloads.map(({ policy = 'default' }) => policy))].sort();
  const lines = [
    `Namespace ${namespace}: ${counted(workloads.length, 'workload')}; ${runsText(workloads, waiting.length)}.`,
    ...(policies.join() === 'default' ? [] : [`Policies: ${policies.join(', ')}.`]),
    ...(seen === undefined ? [] : [seenText(seen)]),
  ];
  const rows = workloads.map((workload) => [
    `${workload.kind} ${workload.name}`,
    String(workload.replicas),
    placesText(workload.runsOn) || '-',
    few(targets.filter((target) => workload.verdicts[target]?.state === 'ready')) || '-',
    heldBack(workload, targets),
  ]);
  const pods = waiting
    .slice(0, MOST_WAITING)
    .map(({ name, since, why }) => [name, ageText(now - Date.parse(since), ['d', 'h', 'm', 's']), why]);
  const more = waiting.length > MOST_WAITING ? `and ${waiting.length - MOST_WAITING} more\n` : '';
  const title = `Waits for a node; archaware explain POD -n ${namespace} says more.`;
  return paragraphs([
    `${lines.map((line) => printable(line, 4_000)).join('\n')}\n`,
    table(['WORKLOAD', 'PODS', 'RUNS ON', 'CAN RUN ON', 'HELD BACK BY'], rows, columns),
    titled(title, ['POD', 'SINCE', 'WHY'], pods, columns) + more,
  ]);
}

function runsText(workloads: readonly ReportedWorkload[], waiting: number): string {
  const sums = new Map<string, number>();
  for (const { runsOn = {} } of workloads)
    for (const [name, count] of Object.entries(runsOn)) sums.set(name, (sums.get(name) ?? 0) + count);
  const places = placesText(Object.fromEntries([...sums].sort()));
  const runs = places === '' ? 'none of its pods runs' : `pods: ${places}`;
  const many = waiting >= MOST_WITHOUT_NODE ? `${waiting} or more` : waiting;
  return `${runs}; ${waiting === 1 ? '1 pod waits' : `${many} pods wait`} for a node`;
}

/** `3 on amd64, 1 on arm64`; `4 running` if the nodes may not be read. */
function placesText(runsOn: ReportedWorkload['runsOn'] = {}): string {
  return Object.entries(runsOn)
    .map(([name, count]) => (name === 'unknown' ? `${count} running` : `${count} on ${name}`))
    .join(', ');
}

function seenText({ time, pods, runsOn, oldestWaiting }: NamespaceReport): string {
  const counts = Object.entries(pods).map(([outcome, count]) => `${count} ${outcome}`);
  const oldest =
    oldestWaiting === undefined ? '' : `; ${oldestWaiting.name} has waited longest, since ${oldestWaiting.since}`;
  return `The controller saw at ${time}: ${[...counts, placesText(runsOn)].filter((part) => part !== '').join(', ')}${oldest}.`;
}

/** Names what keeps a workload from the architectures that it cannot run on, once for each cause. */
function heldBack({ verdicts }: ReportedWorkload, targets: readonly string[]): string {
  const causes = new Map<string, string[]>();
  for (const target of targets) {
    for (const reason of verdicts[target]?.reasons.slice(0, 1) ?? []) {
      const text = briefReason(reason);
      causes.set(text, [...(causes.get(text) ?? []), target]);
    }
  }
  return [...causes].map(([text, names]) => `${names.join(', ')}: ${text}`).join('; ') || '-';
}
