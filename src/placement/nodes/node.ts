import {
  isObject,
  isSameRecord,
  type JsonObject,
  listAt,
  objectAt,
  parseJson,
  stringAt,
  stringsAt,
} from '../../kit/json.ts';
import { reportedArchitecture } from '../../kit/platform.ts';
import { matchesSelector } from '../../kit/selector.ts';
import { MANAGED_ANNOTATION } from '../../names.ts';
import type { Taint } from '../patch/tolerations.ts';
import type { Settings } from '../settings.ts';
import { isLabelKey, isReservedKey } from './label-names.ts';
import { type LabelRules, NO_RULES } from './label-rules.ts';
import { decideLabels, type LabelConflict, type LabelDecision } from './labels.ts';

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
  /** Whether the node is cordoned. */
  readonly unschedulable: boolean;
  /** The taints as the API server sent them, with every field; undefined if the field is absent. */
  readonly taints: readonly JsonObject[] | undefined;
  readonly hasAnnotations: boolean;
  /** The annotation `archaware.dev/managed`, not parsed. */
  readonly managed: string | undefined;
};

/**
 * The taints and labels that archaware set on a node. The annotation records them as JSON:
 * `{"taints":["key=value:effect"],"labels":["domain/name"]}`.
 */
export type Managed = { readonly taints: readonly Taint[]; readonly labels: readonly string[] };

/** Returns what archaware has set on a node, in a few words for the log. */
export function managedText({ taints, labels }: Managed): string {
  return [...taints.map(taintText), ...labels.map((label) => `label ${label}`)].join(', ') || 'nothing of archaware';
}

/** The rules for nodes. A part that is undefined is not decided: it stays as it is. */
export type NodeRules = {
  readonly taints: Settings['taints'] | undefined;
  readonly labels: LabelRules | undefined;
};

/** The decision for a node: the whole list of its taints, its labels, and the annotation (undefined: none). */
export type NodeDecision = { readonly conflicts: readonly LabelConflict[] } & (
  | NodeChange
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'wait'; readonly reason: 'bootstrap' | 'architecture-unknown' }
  | { readonly kind: 'skip'; readonly reason: 'deleting' | 'provider-taint' }
);

/** The change to write to a node. */
export type NodeChange = {
  readonly kind: 'set';
  readonly taints: readonly JsonObject[];
  readonly addedLabels: readonly string[];
  readonly removedLabels: readonly string[];
  readonly managed: string | undefined;
};

/**
 * The decision for a node's taints. `recorded`: those that are archaware's afterwards. With `wait` and `skip` the taints stay as
 * they are.
 */
type TaintDecision =
  | { readonly kind: 'decided'; readonly taints: readonly JsonObject[]; readonly recorded: readonly Taint[] }
  | { readonly kind: 'wait'; readonly reason: 'bootstrap' | 'architecture-unknown' }
  | { readonly kind: 'skip'; readonly reason: 'provider-taint' };

/** Reads a node from the API server's object. Never throws. */
export function readNode(object: JsonObject): Node {
  const metadata = objectAt(object, 'metadata');
  return {
    name: stringAt(metadata, 'name') ?? '',
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    hasLabels: isObject(metadata.labels),
    labels: stringsAt(metadata, 'labels'),
    reportedArchitecture: stringAt(objectAt(objectAt(object, 'status'), 'nodeInfo'), 'architecture') ?? '',
    deleting: stringAt(metadata, 'deletionTimestamp') !== undefined,
    unschedulable: objectAt(object, 'spec').unschedulable === true,
    taints: listAt(objectAt(object, 'spec'), 'taints'),
    hasAnnotations: isObject(metadata.annotations),
    managed: stringAt(objectAt(metadata, 'annotations'), MANAGED_ANNOTATION),
  };
}

/** The parts of a changed node that {@link readNodeSections} needs. */
type NodeSections = {
  readonly resourceVersion: string;
  metadata(): JsonObject | undefined;
  spec(): JsonObject | undefined;
  statusHas(bytes: string): boolean;
};

/**
 * Reads a node that was read before from the parts of its event. Kubelets report the status of every node every few seconds, with
 * its conditions and its images, and nothing of that is read. `isStatus`: the event changes nothing but the status. Undefined: the
 * node must be read as a whole.
 */
export function readNodeSections(sections: NodeSections, before?: Node, isStatus = false): Node | undefined {
  if (before === undefined || before.reportedArchitecture === '') return undefined;
  const { reportedArchitecture: architecture } = before;
  if (!sections.statusHas(`"architecture":${JSON.stringify(architecture)}`)) return undefined;
  if (isStatus) return { ...before, resourceVersion: sections.resourceVersion };
  const [metadata, spec] = [sections.metadata(), sections.spec()];
  if (metadata === undefined || spec === undefined || metadata.uid !== before.uid) return undefined;
  return readNode({ metadata, spec, status: { nodeInfo: { architecture } } });
}

/** Whether two readings of a node differ in nothing but the version. */
export function isSameNode(one: Node, other: Node): boolean {
  return (
    one.uid === other.uid &&
    one.deleting === other.deleting &&
    one.unschedulable === other.unschedulable &&
    one.reportedArchitecture === other.reportedArchitecture &&
    one.managed === other.managed &&
    one.hasLabels === other.hasLabels &&
    one.hasAnnotations === other.hasAnnotations &&
    isSameRecord(one.labels, other.labels) &&
    (one.taints === other.taints || JSON.stringify(one.taints) === JSON.stringify(other.taints))
  );
}

/** Returns the architecture of a node as its GOARCH name; undefined before the kubelet reported it. */
export function nodeArchitecture(node: Pick<Node, 'reportedArchitecture'>): string | undefined {
  return reportedArchitecture(node.reportedArchitecture);
}

/** Returns the architectures of nodes, sorted, without duplicates. */
export function architecturesOf(nodes: Iterable<Node>): string[] {
  const found = new Set<string>();
  for (const node of nodes) {
    const architecture = nodeArchitecture(node);
    if (architecture !== undefined && !node.deleting) found.add(architecture);
  }
  return [...found].sort();
}

/** Returns a taint as kubectl writes it: `key=value:effect`. */
export function taintText({ key, value, effect }: Taint): string {
  return `${key}=${value}:${effect}`;
}

/** Returns `key:effect`, which identifies a kind of taint. */
export function taintKind({ key, effect }: Pick<Taint, 'key' | 'effect'>): string {
  return `${key}:${effect}`;
}

/**
 * Returns the taints of a node as `key:effect`, also those of its provider: daemon pods must keep their tolerations while a taint
 * is there.
 */
export function taintKinds({ taints }: Pick<Node, 'taints'>): readonly string[] {
  return (taints ?? []).flatMap(({ key, effect }) =>
    // Kubernetes' own taints come and go on every node.
    typeof key !== 'string' || key.startsWith('node.kubernetes.io/') ? [] : `${key}:${effect}`,
  );
}

/**
 * Parses the annotation; invalid entries are left out. So are labels that archaware never sets: somebody who can write the
 * annotation must not be able to make archaware remove `kubernetes.io/` labels.
 */
export function readManaged(annotation: string | undefined): Managed {
  const parsed = annotation === undefined ? undefined : parseJson(annotation);
  const list = (field: 'taints' | 'labels'): unknown[] => {
    const items = isObject(parsed) ? parsed[field] : undefined;
    return Array.isArray(items) ? items : [];
  };
  return {
    taints: list('taints').flatMap((text) => readTaintText(text) ?? []),
    labels: list('labels').filter(
      (label): label is string =>
        typeof label === 'string' && label.includes('/') && isLabelKey(label) && !isReservedKey(label),
    ),
  };
}

function readTaintText(text: unknown): Taint | undefined {
  const parts = typeof text === 'string' ? /^([^=:]+)=([^=:]*):([A-Za-z]+)$/.exec(text) : null;
  return parts ? { key: parts[1] ?? '', value: parts[2] ?? '', effect: parts[3] ?? '' } : undefined;
}

/** Returns the annotation's text; undefined if there is nothing to record. */
export function writeManaged({ taints, labels }: Managed): string | undefined {
  if (taints.length === 0 && labels.length === 0) return undefined;
  return JSON.stringify({
    ...(taints.length === 0 ? {} : { taints: taints.map(taintText) }),
    ...(labels.length === 0 ? {} : { labels }),
  });
}

/**
 * Whether a taint of a node is archaware's: the annotation records it, or it has the configured key and effect. Keys in the
 * reserved domains belong to Kubernetes and to providers (GKE taints Arm nodes `kubernetes.io/arch=arm64`), so for them only the
 * annotation counts.
 */
export function isOurTaint(
  taint: JsonObject,
  managed: Pick<Managed, 'taints'>,
  settings: Pick<Settings['taints'], 'key' | 'effect'>,
): boolean {
  if (isRecorded(taint, managed)) return true;
  return taint.key === settings.key && taint.effect === settings.effect && !isReservedKey(settings.key);
}

/**
 * Decides a node's taints and labels. `bootstrapped`: whether all pods were decided once, so that a taint may be set. Taints of
 * archaware that are no longer wanted are removed at the same moment, when pods tolerate the new ones. Labels keep no pod away,
 * so they do not wait.
 */
export function decideNode(node: Node, rules: NodeRules, bootstrapped: boolean): NodeDecision {
  if (node.deleting) return { kind: 'skip', reason: 'deleting', conflicts: [] };
  const managed = readManaged(node.managed);
  const taints = rules.taints && decideTaints(node, managed, rules.taints, bootstrapped);
  return together(node, managed, taints, rules.labels && decideLabels(node.labels, managed.labels, rules.labels));
}

/** Joins the decisions on taints and labels, so that one write applies both. */
function together(
  node: Node,
  managed: Managed,
  taints: TaintDecision | undefined,
  labels: LabelDecision | undefined,
): NodeDecision {
  const conflicts = labels?.conflicts ?? [];
  const list = taints?.kind === 'decided' ? taints.taints : (node.taints ?? []);
  const [addedLabels, removedLabels] = [labels?.added ?? [], labels?.removed ?? []];
  const recorded = {
    taints: taints?.kind === 'decided' ? taints.recorded : managed.taints,
    labels: labels?.recorded ?? managed.labels,
  };
  const annotation = writeManaged(recorded);
  const isSame =
    isSameList(list, node.taints ?? []) &&
    addedLabels.length + removedLabels.length === 0 &&
    // An annotation with the same content in another form is rewritten together with the taints.
    annotation === (taints?.kind === 'decided' ? node.managed : writeManaged(managed));
  if (!isSame) return { kind: 'set', taints: list, addedLabels, removedLabels, managed: annotation, conflicts };
  return taints === undefined || taints.kind === 'decided'
    ? { kind: 'unchanged', conflicts }
    : { ...taints, conflicts };
}

function decideTaints(
  node: Node,
  managed: Managed,
  settings: Settings['taints'],
  bootstrapped: boolean,
): TaintDecision {
  const wanted = wantedTaint(node, settings);
  if (wanted === 'architecture-unknown') return { kind: 'wait', reason: wanted };
  const present = node.taints ?? [];
  const undone = { kind: 'decided', taints: taintsOfOthers(present, managed, settings), recorded: [] } as const;
  if (wanted === undefined) return undone;
  const { key, effect, value } = wanted;
  const foreign = present.find(
    (taint) => taint.key === key && taint.effect === effect && !isOurTaint(taint, managed, settings),
  );
  if (foreign !== undefined) {
    // The provider's taint does the same job. Recorded taints of archaware with another key or effect are removed.
    if (isAsItIs(node, managed, undone)) return { kind: 'skip', reason: 'provider-taint' };
    return bootstrapped ? undone : { kind: 'wait', reason: 'bootstrap' };
  }
  const current = present.find((taint) => taint.key === key && taint.effect === effect);
  const others = present.filter((taint) => taint !== current && !isOurTaint(taint, managed, settings));
  const kept = current?.value === value ? current : { ...wanted };
  const taints = present.includes(kept)
    ? present.filter((taint) => taint === kept || others.includes(taint))
    : [...others, kept];
  const decision = { kind: 'decided', taints, recorded: [wanted] } as const;
  return bootstrapped || isAsItIs(node, managed, decision) ? decision : { kind: 'wait', reason: 'bootstrap' };
}

/** Whether the node's taints and their record already match the decision. */
function isAsItIs(
  node: Node,
  managed: Managed,
  { taints, recorded }: Extract<TaintDecision, { kind: 'decided' }>,
): boolean {
  return (
    isSameList(taints, node.taints ?? []) && recorded.map(taintText).join() === managed.taints.map(taintText).join()
  );
}

function wantedTaint(node: Node, settings: Settings['taints']): Taint | undefined | 'architecture-unknown' {
  if (!settings.manage || !matchesSelector(settings.nodeSelector, node.labels)) return undefined;
  const value = nodeArchitecture(node);
  return value === undefined ? 'architecture-unknown' : { key: settings.key, value, effect: settings.effect };
}

/**
 * Returns the taints that are not archaware's. With `manage: false` the configured key belongs to somebody else, so only the record
 * counts.
 */
function taintsOfOthers(taints: readonly JsonObject[], managed: Managed, settings: Settings['taints']): JsonObject[] {
  return taints.filter((taint) =>
    settings.manage ? !isOurTaint(taint, managed, settings) : !isRecorded(taint, managed),
  );
}

/** Whether a node has a taint that its annotation records as archaware's. */
export function carriesOurTaint({ managed, taints = [] }: Pick<Node, 'managed' | 'taints'>): boolean {
  if (managed === undefined || taints.length === 0) return false;
  const recorded = readManaged(managed);
  return taints.some((taint) => isRecorded(taint, recorded));
}

function isRecorded(taint: JsonObject, managed: Pick<Managed, 'taints'>): boolean {
  return managed.taints.some(({ key, effect }) => taint.key === key && taint.effect === effect);
}

function isSameList(one: readonly JsonObject[], other: readonly JsonObject[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}

/** Decides a node for `clean`: without archaware's taints, labels and annotation. */
export function cleanNode(node: Node, settings: Settings['taints']): NodeDecision {
  const managed = readManaged(node.managed);
  const taints = taintsOfOthers(node.taints ?? [], managed, settings);
  const labels = decideLabels(node.labels, managed.labels, NO_RULES);
  return together(node, managed, { kind: 'decided', taints, recorded: [] }, labels);
}
