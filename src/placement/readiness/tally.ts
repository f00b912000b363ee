import { READINESS_STATES, type Readiness, type ReadinessState, type ReportedWorkload, type Tally } from './report.ts';

/** What shares count. */
export type Measure = 'cpu' | 'replicas';

export const NOTHING: Tally = { workloads: 0, replicas: 0, cpu: 0, memory: 0 };

type Counted = Pick<ReportedWorkload, 'replicas' | 'cpu' | 'memory'>;

/** Returns the sums of workloads. */
export function tallyOf(workloads: readonly Counted[]): Tally {
  const sum = (field: 'replicas' | 'cpu' | 'memory') => workloads.reduce((total, each) => total + each[field], 0);
  return { workloads: workloads.length, replicas: sum('replicas'), cpu: cores(sum('cpu')), memory: sum('memory') };
}

/** Rounds cores to millionths: sums of tenths are not exact, and nobody requests less. */
export function cores(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** Returns what shares count: the requested CPU, or the replicas if no workload requests CPU. */
export function measureOf(all: Tally): Measure {
  return all.cpu > 0 ? 'cpu' : 'replicas';
}

/** Returns a part as a share of the whole, from 0 to 1; of nothing, everything. */
export function shareOf(part: Tally, all: Tally, measure: Measure): number {
  return all[measure] === 0 ? 1 : part[measure] / all[measure];
}

/** Returns how far workloads are for a target. */
export function readinessOf(workloads: readonly ReportedWorkload[], target: string, measure: Measure): Readiness {
  const tally = (state: ReadinessState) =>
    tallyOf(workloads.filter(({ verdicts }) => verdicts[target]?.state === state));
  const [ready, pinned, blocked, missing, unknown] = READINESS_STATES.map(tally);
  const states = {
    ready: ready ?? NOTHING,
    pinned: pinned ?? NOTHING,
    blocked: blocked ?? NOTHING,
    missing: missing ?? NOTHING,
    unknown: unknown ?? NOTHING,
  };
  return { states, readyShare: shareOf(states.ready, tallyOf(workloads), measure) };
}
