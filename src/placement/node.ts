import { MANAGED_ANNOTATION } from '../names.ts';
import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt, stringsAt } from './json.ts';
import { normaliseArchitecture } from './platform.ts';
import { matchesSelector } from './selector.ts';
import type { Settings } from './settings.ts';
import type { Taint } from './tolerations.ts';

/** A node, trimmed to what is read of it. */
export type Node = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `status.nodeInfo.architecture` as the kubelet reported it; empty before it did. */
  readonly reportedArchitecture: string;
  readonly deleting: boolean;
  /** As the API server sent them, every field kept; undefined where the field is absent. */
  readonly taints: readonly JsonObject[] | undefined;
  readonly hasAnnotations: boolean;
  /** The annotation `archaware.dev/managed`, unread. */
  readonly managed: string | undefined;
};

/** What we set on a node, as its annotation records it: JSON `{"taints":["key=value:effect"]}`. */
export type Managed = { readonly taints: readonly Taint[] };

/** What is to become of a node: the whole list of its taints, and the annotation (undefined: none). */
export type NodeDecision =
  | { readonly kind: 'set'; readonly taints: readonly JsonObject[]; readonly managed: string | undefined }
  | { readonly kind: 'settled' }
  | { readonly kind: 'wait'; readonly reason: 'bootstrap' | 'architecture-unknown' }
  | { readonly kind: 'skip'; readonly reason: 'deleting' | 'provider-taint' };

/** Reads a node of the API server. Never throws. */
export function readNode(object: JsonObject): Node {
  const metadata = objectAt(object, 'metadata');
  return {
    name: stringAt(metadata, 'name') ?? '',
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    labels: stringsAt(metadata, 'labels'),
    reportedArchitecture: stringAt(objectAt(objectAt(object, 'status'), 'nodeInfo'), 'architecture') ?? '',
    deleting: stringAt(metadata, 'deletionTimestamp') !== undefined,
    taints: listAt(objectAt(object, 'spec'), 'taints'),
    hasAnnotations: isObject(metadata.annotations),
    managed: stringAt(objectAt(metadata, 'annotations'), MANAGED_ANNOTATION),
  };
}

/** The architecture of a node by its GOARCH name, or undefined before the kubelet reported it. */
export function nodeArchitecture(node: Pick<Node, 'reportedArchitecture'>): string | undefined {
  return normaliseArchitecture(node.reportedArchitecture);
}

/** The architectures of nodes, sorted, each once. */
export function architecturesOf(nodes: Iterable<Node>): string[] {
  const found = new Set<string>();
  for (const node of nodes) {
    const architecture = nodeArchitecture(node);
    if (architecture !== undefined && !node.deleting) found.add(architecture);
  }
  return [...found].sort();
}

/** `key=value:effect`, as kubectl writes a taint. */
export function taintText({ key, value, effect }: Taint): string {
  return `${key}=${value}:${effect}`;
}

/** `key:effect`, by which taints of ours are told apart from others'. */
export function taintKind({ key, effect }: Pick<Taint, 'key' | 'effect'>): string {
  return `${key}:${effect}`;
}

/** Reads the annotation; what cannot be read counts as nothing recorded. */
export function readManaged(annotation: string | undefined): Managed {
  const parsed = annotation === undefined ? undefined : parseJson(annotation);
  const texts = isObject(parsed) && Array.isArray(parsed.taints) ? parsed.taints : [];
  return { taints: texts.flatMap((text) => readTaintText(text) ?? []) };
}

function readTaintText(text: unknown): Taint | undefined {
  const parts = typeof text === 'string' ? /^([^=:]+)=([^=:]*):([A-Za-z]+)$/.exec(text) : null;
  return parts ? { key: parts[1] ?? '', value: parts[2] ?? '', effect: parts[3] ?? '' } : undefined;
}

/** The annotation for what is recorded, or undefined for nothing. */
export function writeManaged(managed: Managed): string | undefined {
  return managed.taints.length === 0 ? undefined : JSON.stringify({ taints: managed.taints.map(taintText) });
}

/**
 * Whether a taint of a node is ours: what the annotation records, and any with our key and our effect. Keys of the
 * reserved domains belong to Kubernetes and to providers (GKE taints Arm nodes `kubernetes.io/arch=arm64`), so there
 * only what is recorded.
 */
export function isOurTaint(
  taint: JsonObject,
  managed: Managed,
  settings: Pick<Settings['taints'], 'key' | 'effect'>,
): boolean {
  if (isRecorded(taint, managed)) return true;
  return taint.key === settings.key && taint.effect === settings.effect && !isReservedKey(settings.key);
}

function isReservedKey(key: string): boolean {
  return /^([^/]+\.)?(kubernetes|k8s)\.io\//.test(key);
}

/**
 * The decision for a node. `bootstrapped`: whether pods had their turn, so that a taint may come; taints of ours that
 * are wanted no longer go at the same moment, by when pods have what they need under the new ones.
 */
export function decideNode(node: Node, settings: Settings['taints'], bootstrapped: boolean): NodeDecision {
  if (node.deleting) return { kind: 'skip', reason: 'deleting' };
  const wanted = wantedTaint(node, settings);
  if (wanted === 'architecture-unknown') return { kind: 'wait', reason: wanted };
  const present = node.taints ?? [];
  const managed = readManaged(node.managed);

  if (wanted === undefined) return settle(node, withoutOurs(present, managed, settings), { taints: [] });
  const { key, effect, value } = wanted;
  const foreign = present.find(
    (taint) => taint.key === key && taint.effect === effect && !isOurTaint(taint, managed, settings),
  );
  if (foreign !== undefined) {
    // The provider's taint does ours' work: what is recorded of ours under another key or effect goes.
    const undone = settle(node, withoutOurs(present, managed, settings), { taints: [] });
    if (undone.kind === 'settled') return { kind: 'skip', reason: 'provider-taint' };
    return bootstrapped ? undone : { kind: 'wait', reason: 'bootstrap' };
  }
  const current = present.find((taint) => taint.key === key && taint.effect === effect);
  const others = present.filter((taint) => taint !== current && !isOurTaint(taint, managed, settings));
  const kept = current?.value === value ? current : { ...wanted };
  const taints = present.includes(kept)
    ? present.filter((taint) => taint === kept || others.includes(taint))
    : [...others, kept];
  const decision = settle(node, taints, { taints: [wanted] });
  return decision.kind === 'set' && !bootstrapped ? { kind: 'wait', reason: 'bootstrap' } : decision;
}

function wantedTaint(node: Node, settings: Settings['taints']): Taint | undefined | 'architecture-unknown' {
  if (!settings.manage || !matchesSelector(settings.nodeSelector, node.labels)) return undefined;
  const value = nodeArchitecture(node);
  return value === undefined ? 'architecture-unknown' : { key: settings.key, value, effect: settings.effect };
}

/** With `manage: false` the current key belongs to somebody else: only what is recorded is ours then. */
function withoutOurs(taints: readonly JsonObject[], managed: Managed, settings: Settings['taints']): JsonObject[] {
  return taints.filter((taint) =>
    settings.manage ? !isOurTaint(taint, managed, settings) : !isRecorded(taint, managed),
  );
}

function isRecorded(taint: JsonObject, managed: Managed): boolean {
  return managed.taints.some(({ key, effect }) => taint.key === key && taint.effect === effect);
}

function settle(node: Node, taints: readonly JsonObject[], managed: Managed): NodeDecision {
  const present = node.taints ?? [];
  const annotation = writeManaged(managed);
  const sameTaints = taints.length === present.length && taints.every((taint, index) => taint === present[index]);
  if (sameTaints && annotation === node.managed) return { kind: 'settled' };
  return { kind: 'set', taints, managed: annotation };
}

/** What `clean` makes of a node: everything that is ours gone. */
export function undoNode(node: Node, settings: Settings['taints']): NodeDecision {
  const managed = readManaged(node.managed);
  return settle(node, withoutOurs(node.taints ?? [], managed, settings), { taints: [] });
}
