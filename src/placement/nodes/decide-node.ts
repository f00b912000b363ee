import { isSame, type JsonObject } from '../../kit/json.ts';
import { matchesSelector } from '../../kit/label-syntax.ts';
import type { Taint } from '../patch/tolerations.ts';
import type { Settings } from '../settings.ts';
import { type LabelRules, NO_RULES } from './label-rules.ts';
import { decideLabels, type LabelConflict, type LabelDecision } from './labels.ts';
import { isOurTaint, isRecorded, type Managed, readManaged, taintText, writeManaged } from './managed.ts';
import { isOfKind, type Node, nodeArchitecture } from './node.ts';

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
 * The decision for a node's taints. `recorded`: those that are archaware's afterwards. With `wait` and `skip` the taints stay as they are.
 */
type TaintDecision =
  | { readonly kind: 'decided'; readonly taints: readonly JsonObject[]; readonly recorded: readonly Taint[] }
  | { readonly kind: 'wait'; readonly reason: 'bootstrap' | 'architecture-unknown' }
  | { readonly kind: 'skip'; readonly reason: 'provider-taint' };

/**
 * Decides a node's taints and labels. `bootstrapped`: whether all pods were decided once, so that a taint may be set. Taints of archaware
 * that are no longer wanted are removed at the same moment, when pods tolerate the new ones. Labels keep no pod away, so they do not wait.
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
  const isUnchanged =
    isSame(list, node.taints ?? []) &&
    addedLabels.length + removedLabels.length === 0 &&
    // An annotation with the same content in another form is rewritten together with the taints.
    annotation === (taints?.kind === 'decided' ? node.managed : writeManaged(managed));
  if (!isUnchanged) return { kind: 'set', taints: list, addedLabels, removedLabels, managed: annotation, conflicts };
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
  const isSameKind = isOfKind(wanted);
  const foreign = present.find((taint) => isSameKind(taint) && !isOurTaint(taint, managed, settings));
  if (foreign !== undefined) {
    // The provider's taint does the same job. Recorded taints of archaware with another key or effect are removed.
    if (isAsItIs(node, managed, undone)) return { kind: 'skip', reason: 'provider-taint' };
    return bootstrapped ? undone : { kind: 'wait', reason: 'bootstrap' };
  }
  const current = present.find(isSameKind);
  const others = present.filter((taint) => taint !== current && !isOurTaint(taint, managed, settings));
  const kept = current?.value === wanted.value ? current : { ...wanted };
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
  return isSame(taints, node.taints ?? []) && recorded.map(taintText).join() === managed.taints.map(taintText).join();
}

function wantedTaint(node: Node, settings: Settings['taints']): Taint | undefined | 'architecture-unknown' {
  if (!settings.manage || !matchesSelector(settings.nodeSelector, node.labels)) return undefined;
  const value = nodeArchitecture(node);
  return value === undefined ? 'architecture-unknown' : { key: settings.key, value, effect: settings.effect };
}

/**
 * Returns the taints that are not archaware's. With `manage: false` the configured key belongs to somebody else, so only the record counts.
 */
function taintsOfOthers(taints: readonly JsonObject[], managed: Managed, settings: Settings['taints']): JsonObject[] {
  return taints.filter((taint) =>
    settings.manage ? !isOurTaint(taint, managed, settings) : !isRecorded(taint, managed),
  );
}

/** Returns the part of a change that concerns taints, and the record that fits; undefined if the change has no other part, or no such. */
export function taintsAlone(node: Node, change: NodeChange): NodeChange | undefined {
  const { taints, addedLabels, removedLabels, managed } = change;
  if (addedLabels.length + removedLabels.length === 0 || isSame(taints, node.taints ?? [])) return undefined;
  const { labels } = readManaged(node.managed);
  const recorded = writeManaged({ taints: readManaged(managed).taints, labels });
  return { kind: 'set', taints, addedLabels: [], removedLabels: [], managed: recorded };
}

/** Decides a node for `clean`: without archaware's taints, labels and annotation. */
export function cleanNode(node: Node, settings: Settings['taints']): NodeDecision {
  const managed = readManaged(node.managed);
  const taints = taintsOfOthers(node.taints ?? [], managed, settings);
  const labels = decideLabels(node.labels, managed.labels, NO_RULES);
  return together(node, managed, { kind: 'decided', taints, recorded: [] }, labels);
}
