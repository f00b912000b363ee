/**
 * Whether a workload can run on an architecture:
 * - `ready`: its images run there, and nothing that the workload asks for keeps it away;
 * - `pinned`: its images run there (or were not asked), but the workload itself or the configuration keeps it away;
 * - `blocked`: an image has no build for the architecture;
 * - `missing`: the same for a DaemonSet that wants to run on every node: it would be missing on these nodes;
 * - `unknown`: an image could not be looked up, or archaware leaves the workload alone.
 */
export type ReadinessState = 'ready' | 'pinned' | 'blocked' | 'missing' | 'unknown';

/** All states, in the order in which summaries show them. */
export const READINESS_STATES: readonly ReadinessState[] = ['ready', 'pinned', 'blocked', 'missing', 'unknown'];

/**
 * Why a workload is not ready. `text` says the same in words, on one line. Names in it are as the cluster and the
 * registries sent them: each form of output must escape them.
 */
export type Reason =
  /** The image has no build for the architecture. */
  | (OfImage & { readonly kind: 'image'; readonly platforms: readonly string[] })
  /** The image could not be looked up; `code` is the code of the lookup's error. */
  | (OfImage & { readonly kind: 'lookup'; readonly code: string })
  /** What the pod asks of its node, and no node of the architecture has. */
  | { readonly kind: 'node-selector' | 'node-affinity' | 'node-name'; readonly text: string }
  /** A taint of somebody else that every fitting node of the architecture has, and that the pod does not tolerate. */
  | { readonly kind: 'taint'; readonly text: string }
  /** The annotation `archaware.dev/architectures` of the workload does not list the architecture. */
  | { readonly kind: 'statement'; readonly text: string }
  /** `architectures.schedulable`, of the configuration or of a policy, excludes the architecture. */
  | { readonly kind: 'schedulable'; readonly text: string }
  /** The configuration or a label says that archaware leaves the workload alone. */
  | { readonly kind: 'left-alone'; readonly text: string };

type OfImage = {
  readonly image: string;
  /** The containers (init containers included) and image volumes that use the image. */
  readonly containers: readonly string[];
  readonly text: string;
};

/** What is known about one workload and one target. */
export type TargetVerdict = {
  readonly state: ReadinessState;
  /** Everything that is in the way, images first; empty for `ready`. A blocked workload may be pinned as well. */
  readonly reasons: readonly Reason[];
};
