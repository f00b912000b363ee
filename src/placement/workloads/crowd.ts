import { counts } from '../spread/constraint.ts';
import { findingOf, type SpreadFinding } from '../spread/finding.ts';
import type { OtherPod, SpreadLimitOf, SpreadPod } from '../spread/limit.ts';
import type { WorkloadName } from './owner.ts';

/** What is true of the cluster for every topology spread constraint. */
export type SpreadSurroundings = {
  readonly limitOf: SpreadLimitOf;
  /** The bound pods of the namespace that are not of this workload. */
  readonly othersOf: (workload: WorkloadName) => readonly OtherPod[];
  /** Whether a rollout of the workload waits for a new pod before it stops an old one. Asked only where it matters. */
  readonly rollsAhead: (workload: WorkloadName, pods: number) => boolean;
};

/** The pods of one workload, of which a constraint may let only some run. */
export type Crowd = {
  add(pod: SpreadPod, bound: boolean): void;
  /** Returns what a constraint keeps off, and how many of those pods have a node and how many wait; undefined if nothing. */
  judge(surroundings: SpreadSurroundings): Judged | undefined;
};

type Judged = { readonly finding: SpreadFinding; readonly bound: number; readonly waiting: number };

/** Creates an empty crowd. */
export function createCrowd(workload: WorkloadName): Crowd {
  /** Pods that differ in nothing that matters, by that. Two revisions of a workload may have other constraints. */
  const kinds = new Map<string, { readonly pod: SpreadPod; readonly bound: number; readonly waiting: number }>();
  return {
    add(pod, bound) {
      // The labels of pods may differ in names and numbers that no constraint selects.
      const key = JSON.stringify([
        pod.constraints,
        pod.demands,
        pod.constraints.map((each) => counts(each, pod.labels)),
      ]);
      const known = kinds.get(key) ?? { pod, bound: 0, waiting: 0 };
      kinds.set(key, { pod, bound: known.bound + (bound ? 1 : 0), waiting: known.waiting + (bound ? 0 : 1) });
    },
    judge({ limitOf, othersOf, rollsAhead }) {
      let worst: Judged | undefined;
      for (const { pod, bound, waiting } of kinds.values()) {
        const limit = limitOf(pod, () => othersOf(workload));
        if (limit === undefined) continue;
        const pods = bound + waiting;
        // Whether a rollout waits for its new pod is asked only where one more pod would be one too many.
        const isFull = workload.kind === 'Deployment' && pods === limit.most && !limit.constraint.isByRevision;
        const finding = findingOf(limit, { pods, rollsAhead: isFull && rollsAhead(workload, pods) });
        if (finding !== undefined && (worst === undefined || limit.most < worst.finding.limit.most)) {
          worst = { finding, bound, waiting };
        }
      }
      return worst;
    },
  };
}
