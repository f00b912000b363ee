import type { ReadinessState } from '../../placement/readiness/readiness-states.ts';
import type { Measure, Readiness, Report, ReportedWorkload, ReportGroup, Tally } from './report.ts';

/** Returns the sums of workloads. */
export function tallyOf(workloads: readonly Omit<Tally, 'workloads'>[]): Tally {
  const sum = (field: 'replicas' | 'cpu' | 'memory') => workloads.reduce((total, each) => total + each[field], 0);
  return { workloads: workloads.length, replicas: sum('replicas'), cpu: cores(sum('cpu')), memory: sum('memory') };
}

/** Rounds cores to millionths: sums of tenths are not exact, and nobody requests less. */
export function cores(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** Returns a part as a share of the whole, from 0 to 1; of nothing, everything. */
export function shareOf(part: Tally, all: Tally, measure: Measure): number {
  return all[measure] === 0 ? 1 : part[measure] / all[measure];
}

/** Returns how far workloads are for a target. */
export function readinessOf(workloads: readonly ReportedWorkload[], target: string, measure: Measure): Readiness {
  const tally = (state: ReadinessState) =>
    tallyOf(workloads.filter(({ verdicts }) => verdicts[target]?.state === state));
  const states = {
    ready: tally('ready'),
    pinned: tally('pinned'),
    blocked: tally('blocked'),
    missing: tally('missing'),
    unknown: tally('unknown'),
  };
  return { states, readyShare: shareOf(states.ready, tallyOf(workloads), measure) };
}

/** A part of the workloads of which less is ready than asked for. */
export type Shortfall = {
  readonly measure: Measure;
  /** From 0 to 1. */
  readonly share: number;
  /** Whether it is only about workloads that request no CPU, beside others that do. */
  readonly isWithoutCpu: boolean;
};

/** Percentages that differ by less are the same: sums of floating-point numbers are not exact. */
const SAME = 1e-9;

/**
 * Returns where less than `percent` is ready for a target. The requested CPU counts, and the replicas of what requests none, each
 * for itself: neither may hide the other. Undefined if there is nothing to judge: no workload wants a pod.
 */
export function shortfalls({ summary }: Report, target: string, percent: number): Shortfall[] | undefined {
  const found = summary.targets[target];
  if (found === undefined || (summary.all.cpu === 0 && summary.all.replicas === 0)) return undefined;
  const { withoutCpu } = found;
  const parts: Shortfall[] = [{ measure: summary.measure, share: found.readyShare, isWithoutCpu: false }];
  if (withoutCpu !== undefined) {
    const share = shareOf(withoutCpu.ready, withoutCpu.all, 'replicas');
    parts.push({ measure: 'replicas', share, isWithoutCpu: true });
  }
  return parts.filter(({ share }) => share * 100 < percent - SAME);
}

/** Adds a value to the list of a key. */
export function addTo<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** What workloads are grouped by. */
export type Grouping = { readonly by: 'namespace' | 'registry' } | { readonly by: 'label'; readonly key: string };

/** Groups workloads, sorted by name. By registry, a workload counts in each group that it has an image of. */
export function groupWorkloads(
  workloads: readonly ReportedWorkload[],
  targets: readonly string[],
  grouping: Grouping,
  measure: Measure,
  registryOf: (image: string) => string,
): ReportGroup[] {
  const groups = new Map<string, ReportedWorkload[]>();
  for (const workload of workloads) {
    for (const name of new Set(namesOf(workload, grouping, registryOf))) addTo(groups, name, workload);
  }
  return [...groups]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, members]) => ({
      name,
      all: tallyOf(members),
      targets: Object.fromEntries(targets.map((target) => [target, readinessOf(members, target, measure)])),
    }));
}

function namesOf(
  { namespace, labels, images }: ReportedWorkload,
  grouping: Grouping,
  registryOf: (image: string) => string,
): readonly string[] {
  switch (grouping.by) {
    case 'namespace':
      return [namespace];
    case 'label':
      return [(Object.hasOwn(labels, grouping.key) ? labels[grouping.key] : undefined) ?? ''];
    case 'registry':
      return images.length === 0 ? [''] : images.map(registryOf);
    default:
      return grouping satisfies never;
  }
}
