import type { Platform } from '../../kit/platform.ts';
import type { Decision, DecisionBasis } from '../decide.ts';
import type { Namespace } from '../eligibility.ts';
import type { SchedulableNode } from '../fit.ts';
import type { Narrowing } from '../images.ts';
import type { NodePool } from '../nodes/node-pools.ts';
import type { PodImage } from '../objects/image.ts';
import type { Workload } from '../objects/workload.ts';
import type { Settings } from '../settings.ts';

/** What became of the look-up of an image. */
export type LookupResult =
  | {
      readonly digest?: string;
      /** host[:port] of the endpoint that answered. */
      readonly source?: string;
      readonly platforms: readonly Platform[];
      readonly skipped: readonly { readonly digest?: string; readonly reason: string }[];
      readonly isIndex?: boolean;
    }
  | { readonly error: LookupError; readonly isSingleManifest?: boolean };

export type LookupError = { readonly code: string; readonly message: string; readonly registry: string };

/** What `explain` is told of the world. */
export type ExplainInput = {
  readonly workload: Workload;
  /** Whether it is in the cluster, or in a file only. */
  readonly applied: boolean;
  readonly namespace: Pick<Namespace, 'name' | 'labels' | 'preferred'>;
  /** The global ones; a policy's are found here. */
  readonly settings: Settings;
  readonly nodes: readonly SchedulableNode[];
  /** Those of Karpenter; absent where they could not be read. */
  readonly nodePools?: readonly NodePool[] | undefined;
  /** The normalised names of an image, as `decide` takes them. */
  readonly namesOf: (image: string) => readonly string[];
};

/** What the look-ups of `imagesToAsk` told, and what only the shell knows. */
export type Findings = {
  /** Undefined: nobody asked for it. */
  readonly lookupOf: (image: PodImage) => LookupResult | undefined;
  readonly pullSecrets: readonly ExplainedPullSecret[];
  /** The value of a configuration key and where it comes from, under a policy. */
  readonly sourceOf: (key: string, policy: string | undefined) => { readonly value: unknown; readonly source: string };
};

/** A pull secret that the pod has, and why it is of no use, if it is not. */
export type ExplainedPullSecret = { readonly name: string; readonly problem?: string };

/** What an image says of the set. */
export type NarrowedImage = { readonly image: PodImage; readonly said: Narrowing };

export type ExplainedDecision = {
  readonly kind: Decision['kind'] | 'skip';
  readonly reason: string;
  /** Of `place`. */
  readonly architectures?: readonly string[];
  readonly basis?: DecisionBasis;
  /** Why no node can take a pod that is placed nevertheless; absent where one can, and where nobody knows. */
  readonly blocked?: string;
  /** Of `wait`: what it comes to after `images.fallbackAfter`, if nothing is found out until then. */
  readonly afterwards?: ExplainedDecision;
};
