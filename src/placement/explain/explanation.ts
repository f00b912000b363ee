import type { Platform } from '../../kit/platform.ts';
import type { SkipReason } from '../eligibility.ts';
import type { Demands, Obstacle } from '../fit.ts';
import type { Toleration } from '../patch/tolerations.ts';
import type { Settings } from '../settings.ts';
import type { WrongPlace } from '../wrong-node/verdict.ts';
import type { ExplainedAffinity } from './affinity.ts';
import type { Clash } from './clash.ts';
import type { ExplainedDecision, ExplainedPullSecret, LookupError, NarrowedImage } from './input.ts';

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
export type NarrowingStep = {
  readonly by: string;
  readonly architectures: readonly string[];
  readonly common: readonly string[];
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
  readonly pullSecrets: readonly ExplainedPullSecret[];
  readonly intersection: readonly NarrowingStep[];
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

/** What the decision was made of, for the advice. */
export type ExplainEvidence = {
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
