import type { DecisionBasis } from '../../placement/decide.ts';
import type { ReadinessState, TargetVerdict } from '../../placement/readiness/readiness-states.ts';

/** A workload at its top owner: the Deployment stands for its ReplicaSets and pods. */
export type ReportedWorkload = {
  /** `Deployment`, `StatefulSet`, `DaemonSet`, `Job`, `CronJob`, `ReplicaSet`, `Pod`, or the kind of an owner that is not one of these. */
  readonly kind: string;
  /** Empty for an object in a file that names none. */
  readonly namespace: string;
  readonly name: string;
  /** How many pods the workload wants at the moment. */
  readonly replicas: number;
  /** The CPU that all replicas request together, in cores. */
  readonly cpu: number;
  /** The memory that all replicas request together, in bytes. */
  readonly memory: number;
  /** The labels of the object (of its template where it has none). */
  readonly labels: Readonly<Record<string, string>>;
  /** The images of all containers, init containers and image volumes, without duplicates. */
  readonly images: readonly string[];
  /** The source of the decision of `run`; absent if it waits, holds the pods or leaves the workload alone. */
  readonly basis?: DecisionBasis;
  /** The policy that applies to it; absent: the settings for all. */
  readonly policy?: string;
  /** How many of its pods run now on nodes of which architecture (`unknown`: the node was not read); absent where none runs. */
  readonly runsOn?: Readonly<Record<string, number>>;
  /** What its requests cost for a month where its pods run now; absent without prices, and where a node has none. */
  readonly cost?: number;
  /** By target. */
  readonly verdicts: Readonly<Record<string, TargetVerdict>>;
};

/** Numbers of workloads that are counted together. */
export type Tally = {
  readonly workloads: number;
  readonly replicas: number;
  /** Cores. */
  readonly cpu: number;
  /** Bytes. */
  readonly memory: number;
};

/** How far a set of workloads is for one target. */
export type Readiness = {
  readonly states: Readonly<Record<ReadinessState, Tally>>;
  /** The share that is ready, from 0 to 1, by `summary.measure`; unknown counts as not ready. 1 if there is nothing to count. */
  readonly readyShare: number;
};

/** An image in the order in which rebuilds free most. */
export type Rebuild = {
  readonly image: string;
  /** What this rebuild makes ready after those that stand before it. */
  readonly frees: Tally;
  /** The same as a share of all workloads, from 0 to 1, by `summary.measure`. */
  readonly share: number;
  /** The share that is ready after this rebuild and those before it. */
  readonly readyAfter: number;
  /** What moving the workloads that it frees saves for a month; only with prices. */
  readonly saves?: number;
};

/** How far the workloads are for one target, and what brings them further. */
export type TargetSummary = Readiness & {
  /** The nodes of the cluster with this architecture; absent without a cluster or without the right to list nodes. */
  readonly nodes?: number;
  /**
   * The images that hold back workloads that nothing else holds back, ranked: each frees the most after those before it. An image
   * may free nothing where it holds its workloads back together with the next one.
   */
  readonly rebuilds: readonly Rebuild[];
  /**
   * The workloads that want pods but request no CPU, which `readyShare` does not count; absent if there are none, or if shares count
   * replicas.
   */
  readonly withoutCpu?: { readonly all: Tally; readonly ready: Tally };
  /**
   * Only with prices, and one for this target. What all workloads request costs for a month: now, and once all that is ready has moved.
   * `unpriced`: workloads that are left out, because a node of theirs has no price.
   */
  readonly cost?: { readonly now: number; readonly moved: number; readonly saves: number; readonly unpriced: number };
};

/** The images that could not be looked up: their workloads are unknown, not ready. */
export type NotLookedUp = {
  readonly images: number;
  /** The workloads that use one of them. */
  readonly workloads: number;
  /** The most first. `code`: of the lookups' error. */
  readonly registries: readonly { readonly registry: string; readonly code: string; readonly images: number }[];
};

/** Something that could not be read, so that the report is not complete. */
export type Unread = {
  /** `deployments`, `pods`, `nodes`, … */
  readonly resource: string;
  /** Why, with the right that is missing: `the right to list deployments.apps in the cluster is missing`. */
  readonly text: string;
};

/** What shares count: the requested CPU, or the replicas if no workload requests CPU. */
export type Measure = 'cpu' | 'replicas';

export type Summary = {
  readonly all: Tally;
  readonly measure: Measure;
  readonly targets: Readonly<Record<string, TargetSummary>>;
  readonly notLookedUp: NotLookedUp;
  /** Empty if everything was read. */
  readonly unread: readonly Unread[];
};

/** What an image means for one target. */
export type ImageBlocking = {
  /** The workloads that the image blocks, alone or together with others. */
  readonly blocks: Tally;
  /** The workloads that would be ready if only this image were rebuilt. */
  readonly alone: Tally;
  /** A newer tag of the image that has a build for the target; only with `--newer`, and only if one was found. */
  readonly newer?: string;
};

export type ReportedImage = {
  /** As the workloads write it. */
  readonly image: string;
  /** The host of the registry; empty for a malformed name. */
  readonly registry: string;
  /** As `linux/arm64`; empty if the image was not looked up or could not be. */
  readonly platforms: readonly string[];
  /** Why the image could not be looked up. */
  readonly error?: { readonly code: string; readonly message: string };
  readonly used: Tally;
  /** By target; only targets for which the image blocks a workload. */
  readonly blocking: Readonly<Record<string, ImageBlocking>>;
};

/** Workloads that `--group-by` puts together. By registry, a workload counts in the group of each registry that it has an image of. */
export type ReportGroup = {
  /** The namespace, the label's value or the registry; empty for workloads without the label. */
  readonly name: string;
  readonly all: Tally;
  readonly targets: Readonly<Record<string, Readiness>>;
};

/** A pod without a node. */
export type PodWithoutNode = {
  readonly namespace: string;
  readonly name: string;
  /** When it was created, as ISO 8601. */
  readonly since: string;
  /** In words; empty if nobody has said it yet. */
  readonly why: string;
};

/** The output of `report`: which workloads can run on which target, and what holds the others back. */
export type Report = {
  /** The architectures that were asked about, sorted. */
  readonly targets: readonly string[];
  readonly summary: Summary;
  /** Sorted by namespace, kind and name. */
  readonly workloads: readonly ReportedWorkload[];
  /** Images that block most first, then by name. */
  readonly images: readonly ReportedImage[];
  /** At most 1,000 pods without a node, those that wait longest first; absent without a cluster. */
  readonly waiting?: readonly PodWithoutNode[];
  /** Only with `--group-by`: what it says (`namespace`, `label:team`, `registry`). */
  readonly groupBy?: string;
  /** Only with `--group-by`; sorted by name. */
  readonly groups?: readonly ReportGroup[];
};
