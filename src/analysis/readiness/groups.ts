import type { ReportedWorkload, ReportGroup } from './report.ts';
import { type Measure, readinessOf, tallyOf } from './tally.ts';

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
    for (const name of new Set(namesOf(workload, grouping, registryOf))) {
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [workload]);
      else group.push(workload);
    }
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

/** Returns a grouping as `--group-by` writes it. */
export function groupingText(grouping: Grouping): string {
  return grouping.by === 'label' ? `label:${grouping.key}` : grouping.by;
}
