import type { Clash } from './clash.ts';
import type { Basis, Decision } from './decide.ts';
import type { Namespace, SkipReason } from './eligibility.ts';
import type { ExplainedAffinity } from './explain-affinity.ts';
import type { Demands, Obstacle, SchedulableNode } from './fit.ts';
import type { Narrowing } from './images.ts';
import type { NodePool } from './node-pools.ts';
import type { Platform } from './platform.ts';
import type { PodImage } from './pod.ts';
import type { Settings } from './settings.ts';
import type { Toleration } from './tolerations.ts';
import type { Workload } from './workload.ts';
import type { WrongPlace } from './wrong-place.ts';

/** What became of the look-up of an image. */
export type Lookup =
  | {
      readonly digest?: string;
      /** host[:port] of the endpoint that answered. */
      readonly source?: string;
      readonly platforms: readonly Platform[];
      readonly skipped: readonly { readonly digest?: string; readonly reason: string }[];
      readonly isIndex?: boolean;
    }
  | { readonly error: LookupError; readonly isSingleManifest?: boolean };

type LookupError = { readonly code: string; readonly message: string; readonly registry: string };

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
  readonly lookupOf: (image: PodImage) => Lookup | undefined;
  readonly pullSecrets: readonly PullSecret[];
  /** The value of a configuration key and where it comes from, under a policy. */
  readonly sourceOf: (key: string, policy: string | undefined) => { readonly value: unknown; readonly source: string };
};

/** A pull secret that the pod has, and why it is of no use, if it is not. */
export type PullSecret = { readonly name: string; readonly problem?: string };

/** How far a pod has come. */
export type PodState = 'not-applied' | 'gated' | 'pending' | 'bound' | 'finished' | 'deleting';

export type ExplainedImage = {
  readonly image: string;
  /** The name of the volume that it is for; absent where it is for a container. */
  readonly volume?: string;
  readonly notAsked?: 'never-pulled' | 'override' | 'statement' | 'left-alone';
  readonly digest?: string;
  readonly source?: string;
  readonly platforms: readonly Platform[];
  /** Entries of its index that do not count. */
  readonly skipped: readonly { readonly digest?: string; readonly reason: string }[];
  /** Why it does not narrow the set, whatever it was built for. */
  readonly anywhere?: 'volume' | 'webassembly';
  readonly error?: LookupError;
};

/** One narrowing of the set: by an image, by the pod's annotation, or by a setting, and what is left then. */
export type Step = {
  readonly by: string;
  readonly architectures: readonly string[];
  readonly common: readonly string[];
};

export type ExplainedDecision = {
  readonly kind: Decision['kind'] | 'skip';
  readonly reason: string;
  /** Of `place`. */
  readonly architectures?: readonly string[];
  readonly basis?: Basis;
  /** Why no node can take a pod that is placed nevertheless; absent where one can, and where nobody knows. */
  readonly blocked?: string;
  /** Of `wait`: what it comes to after `images.fallbackAfter`, if nothing is found out until then. */
  readonly afterwards?: ExplainedDecision;
};

/** Nodes that no demand of the pod tells apart, and whether it may go there. */
export type ExplainedNodes = {
  readonly architecture?: string;
  readonly names: readonly string[];
  readonly unschedulable: boolean;
  /** `key=value:effect` of those that keep pods away. */
  readonly taints: readonly string[];
  /** Those of which the pod's selectors speak. */
  readonly labels: Readonly<Record<string, string>>;
  /** Whether all images run there; absent where nobody knows. */
  readonly runs?: boolean;
  /** As the pod is now; of a bound one, as if the scheduler looked for another node. Resources, ports, volumes and other pods are not looked at. */
  readonly fits: boolean;
  /** In the scheduler's words and order; it tells the first only. */
  readonly reasons: readonly string[];
  /** The same with the tolerations and the affinity that follow from the decision. */
  readonly placed: { readonly fits: boolean; readonly reasons: readonly string[] };
};

/** What `explain` prints; the names of fields are stable. */
export type Explanation = {
  readonly pod: {
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
    readonly os: string;
    readonly state: PodState;
    readonly node?: string;
    readonly gates?: readonly string[];
    /** What the scheduler last said of it. */
    readonly scheduler?: string;
  };
  readonly images: readonly ExplainedImage[];
  readonly pullSecrets: readonly PullSecret[];
  readonly intersection: readonly Step[];
  /** The first that matches, where one does. */
  readonly policy?: string;
  readonly settings: readonly { readonly key: string; readonly value: unknown; readonly source: string }[];
  readonly decision: ExplainedDecision;
  /** Those that follow, and those of ours that no longer do: they cannot be taken from a pod. */
  readonly tolerations: readonly (Toleration & { readonly present: boolean; readonly stale?: true })[];
  /** Absent where the mode has none, and where it is too late for it. */
  readonly affinity?: ExplainedAffinity;
  readonly nodes: readonly ExplainedNodes[];
  readonly advice: readonly string[];
};

/** What an image says of the set. */
export type NarrowedImage = { readonly image: PodImage; readonly said: Narrowing };

/** What the decision was made of, for the advice. */
export type Evidence = {
  /** Those that apply to this pod. */
  readonly settings: Settings;
  readonly skipped: SkipReason | undefined;
  readonly narrowed: readonly NarrowedImage[];
  readonly clusterArchitectures: readonly string[];
  /** Of a bound pod of which a container does not run, as its node does not run its image. */
  readonly wrongPlace: WrongPlace | undefined;
  /** What the pod demands of nodes with what follows. */
  readonly demands: Demands;
  /** Whether it waits without the affinity that it should have, and can no longer get. */
  readonly isLate: boolean;
  /** Of a pod that asks for other architectures than its images run on. */
  readonly clash: Clash | undefined;
  /** What still keeps the pod off each of the explanation's `nodes`, with the tolerations that follow. */
  readonly obstacles: readonly (readonly Obstacle[])[];
};
