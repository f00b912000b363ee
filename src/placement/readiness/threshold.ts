import type { Report } from './report.ts';
import { type Measure, shareOf } from './tally.ts';

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
