import type { JudgedWorkload } from '../../analysis/workloads/overview.ts';
import type { Operation } from '../../kit/json-patch.ts';
import type { FailedImage, ImageSet } from '../../placement/decide.ts';
import type { NamedObject } from '../../placement/objects/kinds.ts';
import type { Requirement } from '../../placement/patch/affinity.ts';
import type { PlacedPart } from '../../placement/refused-parts.ts';
import type { PoolProblem } from '../survey/survey.ts';

/** The output of `plan`, one entry for each object; each list is sorted by kind, namespace and name. */
export type Plan = {
  readonly changes: readonly (NamedObject & { readonly action: string; readonly patch: readonly Operation[] })[];
  readonly waiting: readonly (NamedObject & { readonly images: readonly string[] })[];
  readonly held: readonly (NamedObject & { readonly images: readonly ImageSet[] })[];
  /** Sorted by image. */
  readonly unresolved: readonly FailedImage[];
  /** Pods that archaware leaves alone although they need a node. */
  readonly ignored: readonly NamedObject[];
  /** What is behind the counts. */
  readonly workloads: readonly JudgedWorkload[];
  /**
   * What the API server refuses in a dry run with the rights of the user: pods with archaware's parts (`kind: Namespace`: any pod of
   * it; `DaemonSet`: its pods, or the write to its template).
   */
  readonly refused: readonly (NamedObject & { readonly parts: readonly PlacedPart[]; readonly message: string })[];
  /** The problems of Karpenter's NodePools; empty if they cannot be read. */
  readonly pools: readonly PoolProblem[];
  /** Workloads whose new pods would get a node affinity, which pods that exist cannot get; only in modes with affinity. */
  readonly newPods: readonly (NamedObject & { readonly requires: readonly Requirement[] })[];
};

/** What the tables say about an object in addition to the plan. */
export type Seen = {
  /** Returns the workload of a pod; the object itself for other kinds. */
  workloadOf(object: NamedObject): NamedObject;
  /** What becomes of a held object; empty for a template. */
  stateOf(object: NamedObject): string;
  /** The heading for a held object: which key or policy narrowed its architectures. */
  headingOf(held: Plan['held'][number]): string;
  /** The pods and templates with images that are not known, whether or not they wait for them. */
  readonly uses: Plan['waiting'];
};
