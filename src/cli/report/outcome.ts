import { EXIT } from '../../app/context.ts';
import { ConfigurationError } from '../../config/problems.ts';
import type { Report } from '../../placement/readiness/report.ts';
import { shortfalls } from '../../placement/readiness/tally.ts';
import { inputName } from '../objects.ts';
import type { ReportOptions } from './options.ts';

/** Returns the exit code of a report with `--fail-under`, and notes what falls short. Throws ConfigurationError if nothing wants a pod. */
export function exitFor(made: Report, failUnder: number, note: (line: string) => void): number {
  const [target = ''] = made.targets;
  const short = shortfalls(made, target, failUnder);
  if (short === undefined) {
    throw new ConfigurationError([
      `--fail-under: nothing to judge: no workload wants a pod (${made.summary.all.workloads} are scaled to 0 or suspended)`,
    ]);
  }
  for (const { measure, share, isWithoutCpu } of short) {
    const what = measure === 'cpu' ? 'requested CPU is' : `replicas ${isWithoutCpu ? 'that request no CPU ' : ''}are`;
    note(
      `${Math.floor(share * 1_000 + 1e-9) / 10} % of the ${what} ready for ${target}, less than --fail-under ${failUnder}`,
    );
  }
  return short.length === 0 ? EXIT.done : EXIT.found;
}

/** Throws ConfigurationError if a report has no workload: "100 %" of no workload would look like a success. */
export function refuseNothing({ summary }: Report, { files, namespace, selectorText }: ReportOptions): void {
  if (summary.all.workloads > 0) return;
  const where = files.length > 0 ? `in ${files.map(inputName).join(', ')}` : 'in the cluster';
  const within = namespace === undefined ? '' : `, namespace ${namespace}`;
  const labelled = selectorText === '' ? '' : ` with the labels ${selectorText}`;
  const unread = summary.unread.map(({ text }) => text);
  throw new ConfigurationError([`report: no workload${labelled} found ${where}${within}`, ...unread]);
}
