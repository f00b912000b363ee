import { type Demands, readDemands } from '../fit.ts';
import { type AffinityIntent, type Requirement, withAffinity } from '../patch/affinity.ts';
import type { Preference } from '../preference.ts';
import type { ExplainInput } from './input.ts';

/** The node affinity that follows from a decision; `present`: the pod speaks of it itself, so that it is left as it is. */
export type ExplainedAffinity = {
  readonly required: readonly (Requirement & { readonly present: boolean })[];
  readonly preferred: readonly (Preference & { readonly present: boolean })[];
};

/** Whether affinity can still be written: before the pod is there, and while it holds our gate. Never of a DaemonSet. */
export function mayBeNarrowed({ workload, applied }: Pick<ExplainInput, 'workload' | 'applied'>): boolean {
  if (workload.kind === 'DaemonSet' || workload.pod?.owner?.kind === 'DaemonSet') return false;
  if (workload.demands.nodeName !== undefined) return false;
  return !applied || workload.pod?.gated !== undefined;
}

/** Whether a pod that waits to be scheduled lacks a requirement that cannot be written any more. */
export function isTooLate(input: Pick<ExplainInput, 'workload' | 'applied'>, intent: AffinityIntent): boolean {
  const { workload, applied } = input;
  const waits = applied && workload.pod?.nodeName === undefined && workload.pod?.owner?.kind !== 'DaemonSet';
  if (!waits || mayBeNarrowed(input)) return false;
  return withAffinity(workload.spec, { ...intent, preferred: [] }) !== undefined;
}

/** Tells what of an intent a pod lacks. */
export function explainAffinity({ spec }: ExplainInput['workload'], intent: AffinityIntent): ExplainedAffinity {
  const isPresent = (part: Partial<AffinityIntent>) =>
    withAffinity(spec, { required: [], preferred: [], ...part }) === undefined;
  return {
    required: intent.required.map((entry) => ({ ...entry, present: isPresent({ required: [entry] }) })),
    preferred: intent.preferred.map((entry) => ({ ...entry, present: isPresent({ preferred: [entry] }) })),
  };
}

/** What a pod demands of nodes when it has that affinity. */
export function narrowedDemands({ spec, demands }: ExplainInput['workload'], intent: AffinityIntent): Demands {
  const affinity = withAffinity(spec, intent);
  return affinity === undefined ? demands : { ...demands, terms: readDemands({ affinity }).terms };
}
