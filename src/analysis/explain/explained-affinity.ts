import { ARCHITECTURE_LABEL } from '../../names.ts';
import type { Decision } from '../../placement/decide.ts';
import { type Demands, readDemands } from '../../placement/fit.ts';
import { isDaemonSetOfAnyGroup, isForOneNode } from '../../placement/objects/kinds.ts';
import {
  type AffinityIntent,
  isIn,
  type Preference,
  type Requirement,
  withAffinity,
} from '../../placement/patch/affinity.ts';
import { templateRequires } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import type { ExplainInput } from './input.ts';

/**
 * The node affinity that follows from a decision. `present`: the pod has it already, or mentions the label itself, so archaware
 * adds nothing.
 */
export type ExplainedAffinity = {
  readonly required: readonly (Requirement & { readonly present: boolean })[];
  readonly preferred: readonly (Preference & { readonly present: boolean })[];
};

/** Whether affinity can still be written to a pod: before it is created, and while it has archaware's gate. Never to a daemon pod. */
export function mayBeNarrowed({ workload, applied }: Pick<ExplainInput, 'workload' | 'applied'>): boolean {
  if (isAgent(workload)) return false;
  if (workload.demands.nodeName !== undefined) return false;
  return !applied || workload.pod?.gated !== undefined;
}

/** Returns the node affinity that archaware gives to the template of a DaemonSet of Kubernetes; undefined: none. */
export function templateIntent(
  { workload }: Pick<ExplainInput, 'workload'>,
  decision: Decision | undefined,
  settings: Settings,
): AffinityIntent | undefined {
  if (workload.kind !== 'DaemonSet' || decision?.kind !== 'place') return undefined;
  const requires = templateRequires(settings, decision);
  return requires.length === 0 ? undefined : { required: [isIn(ARCHITECTURE_LABEL, requires)], preferred: [] };
}

/** Whether this is a DaemonSet of any API group, or one of its pods. */
export function isAgent({ kind, pod, spec }: ExplainInput['workload']): boolean {
  return isDaemonSetOfAnyGroup(kind) || isForOneNode(pod?.owner, spec);
}

/** Whether a pending pod lacks a requirement that cannot be written any more. */
export function isTooLate(input: Pick<ExplainInput, 'workload' | 'applied'>, intent: AffinityIntent): boolean {
  const { workload, applied } = input;
  const waits = applied && workload.pod?.nodeName === undefined && !isAgent(workload);
  if (!waits || mayBeNarrowed(input)) return false;
  return withAffinity(workload.spec, { ...intent, preferred: [] }) !== undefined;
}

/** Lists an intent's requirements and preferences, and which of them the pod has. */
export function explainAffinity({ spec }: ExplainInput['workload'], intent: AffinityIntent): ExplainedAffinity {
  const isPresent = (part: Partial<AffinityIntent>) =>
    withAffinity(spec, { required: [], preferred: [], ...part }) === undefined;
  return {
    required: intent.required.map((entry) => ({ ...entry, present: isPresent({ required: [entry] }) })),
    preferred: intent.preferred.map((entry) => ({ ...entry, present: isPresent({ preferred: [entry] }) })),
  };
}

/** Returns the pod's demands on nodes once it has that affinity. */
export function narrowedDemands({ spec, demands }: ExplainInput['workload'], intent: AffinityIntent): Demands {
  const affinity = withAffinity(spec, intent);
  return affinity === undefined ? demands : { ...demands, terms: readDemands({ affinity }).terms };
}
