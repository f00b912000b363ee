import type { SkipReason } from '../../placement/eligibility.ts';
import type { Demands, Obstacle } from '../../placement/fit.ts';
import type { NarrowedImage } from '../../placement/images.ts';
import type { BrokenContainer } from '../../placement/objects/containers.ts';
import type { Toleration } from '../../placement/patch/tolerations.ts';
import type { Settings } from '../../placement/settings.ts';
import type { WrongNodeFinding } from '../../placement/wrong-node/judge.ts';
import type { FoundImage, LookupError } from '../lookup-results.ts';
import type { Clash } from './clash.ts';
import type { ExplainedAffinity } from './explained-affinity.ts';
import type { ExplainedDecision, ExplainedPullSecret, ExplainInput } from './input.ts';
import type { ControllerState } from './no-controller.ts';

/** The state of a pod on its way to a node. */
export type PodState = 'not-applied' | 'template' | 'gated' | 'pending' | 'bound' | 'finished' | 'deleting';

export type ExplainedImage = Omit<FoundImage, 'isIndex' | 'isBundle'> & {
  readonly image: string;
  /** The name of the image volume that uses the image; absent for an image of a container. */
  readonly volume?: string;
  readonly notAsked?: 'never-pulled' | 'override' | 'statement' | 'left-alone';
  /** Why the image runs anywhere, independent of its platforms. */
  readonly anywhere?: 'volume' | 'webassembly' | 'bundle';
  readonly error?: LookupError;
};

/** One step that narrows the architectures: by an image, by the pod's annotation or by a setting. `common`: what is left after it. */
export type NarrowingStep = {
  readonly by: string;
  readonly architectures: readonly string[];
  readonly common: readonly string[];
};

/** Nodes that look the same to the pod, and whether it may go there. */
export type ExplainedNodes = {
  readonly architecture?: string;
  readonly names: readonly string[];
  readonly unschedulable: boolean;
  /** The taints that keep pods away, as `key=value:effect`. */
  readonly taints: readonly string[];
  /** The labels that the pod's selectors mention. */
  readonly labels: Readonly<Record<string, string>>;
  /** Whether all images run there; absent if that is not known. */
  readonly runs?: boolean;
  /**
   * Whether the pod fits as it is now (a bound pod: if the scheduler looked for another node). Resources, ports, volumes and other
   * pods are not considered.
   */
  readonly fits: boolean;
  /** Why it does not fit, in the scheduler's words and order. The scheduler itself reports only the first. */
  readonly reasons: readonly string[];
  /** The same, once the pod has the tolerations and the affinity of the decision. */
  readonly placed: { readonly fits: boolean; readonly reasons: readonly string[] };
};

/** The answer in one sentence. */
export type ExplainedVerdict = {
  /**
   * `runs`: it has a node. `wrong-node`: it has one, and does not run there. `can-run`: a node takes it, or it will. `waits`: for
   * a lookup, a write or a gate. `held`: until its images have an architecture in common. `fits-nowhere`: no node takes it.
   * `left-alone`: archaware does nothing for it. `ended`: it has finished, or is being deleted.
   */
  readonly state: 'runs' | 'wrong-node' | 'can-run' | 'waits' | 'held' | 'fits-nowhere' | 'left-alone' | 'ended';
  /** What happens to the pod, and why. */
  readonly text: string;
  /** When a pod that waits starts at the latest (ISO 8601), by the Event of the controller; absent if that is not known. */
  readonly startsAtLatest?: string;
};

/** The output of `explain`. The field names are stable. */
export type Explanation = {
  readonly verdict: ExplainedVerdict;
  readonly pod: {
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
    readonly os: string;
    readonly state: PodState;
    readonly node?: string;
    readonly gates?: readonly string[];
    /** The scheduler's last message about the pod. */
    readonly scheduler?: string;
  };
  /** Whether a controller is there; absent if that is not known. */
  readonly controller?: ControllerState['kind'];
  /**
   * Of a pod that waits: what the controller's newest Event says of an image that it does not know, if `explain` knows all of them, or
   * waits for a registry's limit itself; absent if there is none.
   */
  readonly said?: ExplainInput['said'];
  /** With `placement.publish`: whether the policy placed the pod as it was created, and the images that are not published. */
  readonly publication?: {
    readonly placedAtCreation: boolean;
    readonly missing: readonly { readonly image: string; readonly why: string }[];
  };
  readonly images: readonly ExplainedImage[];
  readonly pullSecrets: readonly ExplainedPullSecret[];
  readonly intersection: readonly NarrowingStep[];
  /** The first policy that matches; absent if none does. */
  readonly policy?: string;
  readonly settings: readonly { readonly key: string; readonly value: unknown; readonly source: string }[];
  readonly decision: ExplainedDecision;
  /** The tolerations of the decision, and archaware's earlier ones (`stale`), which cannot be removed from a pod. */
  readonly tolerations: readonly (Toleration & { readonly present: boolean; readonly stale?: true })[];
  /** Absent if the mode has no affinity, or if it is too late to write it. */
  readonly affinity?: ExplainedAffinity;
  readonly nodes: readonly ExplainedNodes[];
  readonly advice: readonly string[];
};

/** An explanation before its verdict and its advice are known. */
export type WithoutAnswer = Omit<Explanation, 'advice' | 'verdict'>;

/** Intermediate results that the advice needs. */
export type ExplainEvidence = {
  /** The settings that apply to this pod. */
  readonly settings: Settings;
  readonly skipped: SkipReason | undefined;
  readonly narrowed: readonly NarrowedImage[];
  readonly clusterArchitectures: readonly string[];
  /** Set if the pod is bound to a node that does not run its images, and a container is broken. */
  readonly wrongNode: WrongNodeFinding | undefined;
  /** A container that the kernel of its node refused to run, by its status; the node's architecture may be unknown. */
  readonly refused: BrokenContainer | undefined;
  /** The pod's demands on nodes once it has the decision's tolerations and affinity. */
  readonly demands: Demands;
  /** Whether the pod waits without the affinity that it should have, and can no longer get it. */
  readonly isLate: boolean;
  /** Set if the pod asks for other architectures than its images run on. */
  readonly clash: Clash | undefined;
  /** What the taints do to its topology spread, and what helps. */
  readonly spread: string | undefined;
  /** For each entry of the explanation's `nodes`: what keeps the pod off even with the decision's tolerations and affinity. */
  readonly obstacles: readonly (readonly Obstacle[])[];
};
