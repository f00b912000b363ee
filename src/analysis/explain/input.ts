import type { EventReason } from '../../names.ts';
import type { Decision, DecisionBasis } from '../../placement/decide.ts';
import type { Node } from '../../placement/nodes/node.ts';
import type { PodImage } from '../../placement/objects/containers.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import type { Answers } from '../../placement/publish/known-images.ts';
import type { Settings } from '../../placement/settings.ts';
import type { LookupResult } from '../lookup-results.ts';
import type { NodePool } from '../nodes/node-pools.ts';
import type { Workload } from '../workloads/workload.ts';
import type { ControllerState } from './no-controller.ts';

/** The state of the cluster and the configuration that `explain` works on. */
export type ExplainInput = {
  readonly workload: Workload;
  /** Whether the workload is a pod of the cluster. */
  readonly applied: boolean;
  /** Whether the workload is an object of the cluster that creates pods. */
  readonly isTemplate?: boolean;
  readonly namespace: Pick<Namespace, 'name' | 'labels' | 'preferred'>;
  /** The global settings; `explain` looks for a policy. */
  readonly settings: Settings;
  /** Undefined: not known, without a cluster or without the right to list them. */
  readonly nodes: readonly Node[] | undefined;
  /** Karpenter's NodePools; absent if they could not be read. */
  readonly nodePools?: readonly NodePool[] | undefined;
  /** Whether a controller is there; absent if that is not known. */
  readonly controller?: ControllerState | undefined;
  /** What is published for the policy archaware-place; absent if nothing should be, or if it may not be read. */
  readonly published?: Answers | undefined;
  /** The normalised names of an image, as `decide` takes them. */
  readonly namesOf: (image: string) => readonly string[];
  /** When the pod starts at the latest by the controller's Event, and the time now; absent if no Event says so. */
  readonly patience?: { readonly startsAtLatestMs: number; readonly nowMs: number } | undefined;
  /** What the controller's newest Event says of an image that it does not know, escaped, and when (`06:13:20 UTC`). */
  readonly said?: { readonly note: string; readonly at: string } | undefined;
  /** What the API server refuses, by the controller's Event about the object, its owner or what it creates; escaped. */
  readonly refusal?: { readonly reason: EventReason; readonly note: string } | undefined;
};

/** The results of the lookups for `imagesToAsk`, and facts that only the caller knows. */
export type Findings = {
  /** Undefined: the image was not looked up. */
  readonly lookupOf: (image: PodImage) => LookupResult | undefined;
  readonly pullSecrets: readonly ExplainedPullSecret[];
  /** The value of a configuration key and where it comes from, under a policy. */
  readonly sourceOf: (key: string, policy: string | undefined) => { readonly value: unknown; readonly source: string };
};

/** A pull secret of the pod. `problem`: why it cannot be used. */
export type ExplainedPullSecret = { readonly name: string; readonly problem?: string };

export type ExplainedDecision = {
  readonly kind: Decision['kind'] | 'skip';
  readonly reason: string;
  /** Only for `place`. */
  readonly architectures?: readonly string[];
  readonly basis?: DecisionBasis;
  /** Why no node can take the pod although it is placed; absent if a node can, or if that is not known. */
  readonly blocked?: string;
  /** Only for `wait`: the decision after `images.fallbackAfter`, if no lookup succeeds until then. */
  readonly afterwards?: ExplainedDecision;
};
