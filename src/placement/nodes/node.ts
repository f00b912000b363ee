import { isObject, isSame, type JsonObject, listAt, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { isArchitecture, reportedArchitecture } from '../../kit/platform.ts';
import { MANAGED_ANNOTATION } from '../../names.ts';
import type { Taint } from '../patch/tolerations.ts';

/** A node, reduced to the fields that archaware reads. */
export type Node = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly hasLabels: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** `status.nodeInfo.architecture` as the kubelet reported it; empty before that. */
  readonly reportedArchitecture: string;
  readonly deleting: boolean;
  /** Whether the condition `Ready` is true. */
  readonly ready: boolean;
  readonly unschedulable: boolean;
  /** The taints as the API server sent them, with every field; undefined if the field is absent. */
  readonly taints: readonly JsonObject[] | undefined;
  readonly hasAnnotations: boolean;
  /** The annotation `archaware.dev/managed`, not parsed. */
  readonly managed: string | undefined;
};

/** Reads a node from the API server's object. Never throws. */
export function readNode(object: JsonObject): Node {
  const metadata = objectAt(object, 'metadata');
  const conditions = listAt(objectAt(object, 'status'), 'conditions') ?? [];
  return {
    name: stringAt(metadata, 'name') ?? '',
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    hasLabels: isObject(metadata.labels),
    labels: stringsAt(metadata, 'labels'),
    reportedArchitecture: stringAt(objectAt(objectAt(object, 'status'), 'nodeInfo'), 'architecture') ?? '',
    deleting: stringAt(metadata, 'deletionTimestamp') !== undefined,
    ready: conditions.some(({ type, status }) => type === 'Ready' && status === 'True'),
    unschedulable: objectAt(object, 'spec').unschedulable === true,
    taints: listAt(objectAt(object, 'spec'), 'taints'),
    hasAnnotations: isObject(metadata.annotations),
    managed: stringAt(objectAt(metadata, 'annotations'), MANAGED_ANNOTATION),
  };
}

/** Whether two readings of a node differ in nothing but the version. */
export function isSameNode(one: Node, other: Node): boolean {
  return (
    one.uid === other.uid &&
    one.deleting === other.deleting &&
    one.ready === other.ready &&
    one.unschedulable === other.unschedulable &&
    one.reportedArchitecture === other.reportedArchitecture &&
    one.managed === other.managed &&
    one.hasLabels === other.hasLabels &&
    one.hasAnnotations === other.hasAnnotations &&
    isSame(one.labels, other.labels) &&
    isSame(one.taints, other.taints)
  );
}

/** Returns the architecture of a node as its GOARCH name; undefined before the kubelet reported it. */
export function nodeArchitecture(node: Pick<Node, 'reportedArchitecture'>): string | undefined {
  return reportedArchitecture(node.reportedArchitecture);
}

/**
 * Whether a node can count for its architecture as soon as it is seen: it is ready, or it has a taint with that architecture as its
 * value. A kubelet can write its status, but no taint of its node. A name that Go does not have concerns only the node itself.
 */
export function isWitness(node: Pick<Node, 'reportedArchitecture' | 'deleting' | 'ready' | 'taints'>): boolean {
  const architecture = nodeArchitecture(node);
  if (architecture === undefined || !isArchitecture(architecture) || node.deleting) return false;
  return node.ready || (node.taints ?? []).some(({ value }) => value === architecture);
}

/**
 * Returns the cluster's architectures by the nodes that are there, sorted, without duplicates, as a controller counts them that
 * starts now. While it runs, {@link file://./witness.ts} follows them.
 */
export function architecturesOf(nodes: Iterable<Node>): string[] {
  return reportedBy([...nodes].filter(isWitness));
}

/** Returns every architecture that nodes report, sorted, without duplicates. */
export function reportedBy(nodes: Iterable<Node>): string[] {
  const found = new Set<string>();
  for (const node of nodes) {
    const architecture = nodeArchitecture(node);
    if (architecture !== undefined && !node.deleting) found.add(architecture);
  }
  return [...found].sort();
}

/** Returns `key:effect`, which identifies a kind of taint. */
export function taintKind({ key, effect }: Pick<Taint, 'key' | 'effect'>): string {
  return `${key}:${effect}`;
}

/** Reads a taint as the API server sent it. */
export function readTaint(taint: JsonObject): Taint {
  const [key = '', value = '', effect = ''] = ['key', 'value', 'effect'].map((field) => stringAt(taint, field));
  return { key, value, effect };
}

/** Returns whether a taint is of a kind: a node has one of each key and effect. */
export function isOfKind({ key, effect }: Pick<Taint, 'key' | 'effect'>) {
  return (taint: { readonly key?: unknown; readonly effect?: unknown }) => taint.key === key && taint.effect === effect;
}

/**
 * Returns the taints of a node as `key:effect`, also those of its provider: daemon pods must keep their tolerations while a taint is there.
 */
export function taintKinds({ taints }: Pick<Node, 'taints'>): readonly string[] {
  return (taints ?? []).flatMap(({ key, effect }) =>
    // Kubernetes' own taints come and go on every node.
    typeof key !== 'string' || key.startsWith('node.kubernetes.io/') ? [] : `${key}:${effect}`,
  );
}
