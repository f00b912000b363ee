import { isObject, type JsonObject, listAt, objectAt, stringAt, stringsAt } from '../kit/json.ts';
import { type Node, readTaint } from './nodes/node.ts';
import { type Taint, tolerates } from './patch/tolerations.ts';

/**
 * The fields of a pod by which the scheduler rules nodes out: node name, node selector, required node affinity, tolerations.
 * Resources, ports, volumes and other pods also matter to the scheduler, but are not modelled here. These fields are read from
 * the whole object, because only `explain` and evictions need them.
 */
export type Demands = {
  readonly nodeName: string | undefined;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** The terms of the required node affinity, of which one must match; undefined if the pod has none. */
  readonly terms: readonly Term[] | undefined;
  readonly tolerations: readonly JsonObject[];
};

type Term = { readonly expressions: readonly NodeRequirement[]; readonly fields: readonly NodeRequirement[] };
type NodeRequirement = { readonly key: string; readonly operator: string; readonly values: readonly string[] };

/** A reason why a pod cannot go to a node. */
export type Obstacle =
  | { readonly kind: 'unschedulable' }
  | { readonly kind: 'node-name' }
  | { readonly kind: 'taint'; readonly taint: Taint }
  | { readonly kind: 'affinity' };

const UNSCHEDULABLE: Taint = { key: 'node.kubernetes.io/unschedulable', value: '', effect: 'NoSchedule' };

/** Taints that come and go, and say nothing about which pods a node is meant for. */
const PASSING =
  /^(?:node\.kubernetes\.io\/|node\.cloudprovider\.kubernetes\.io\/|karpenter\.sh\/|ToBeDeletedByClusterAutoscaler$)/;

/** Whether a taint comes and goes by itself: of the node's state, or of an autoscaler that removes it. */
export function isPassing(taint: JsonObject): boolean {
  return PASSING.test(stringAt(taint, 'key') ?? '');
}

/** Reads a pod's or a template's `spec`. Never throws. */
export function readDemands(spec: JsonObject): Demands {
  const required = objectAt(objectAt(spec, 'affinity'), 'nodeAffinity').requiredDuringSchedulingIgnoredDuringExecution;
  return {
    nodeName: stringAt(spec, 'nodeName') || undefined,
    nodeSelector: stringsAt(spec, 'nodeSelector'),
    terms: isObject(required) ? (listAt(required, 'nodeSelectorTerms') ?? []).map(readTerm) : undefined,
    tolerations: listAt(spec, 'tolerations') ?? [],
  };
}

/** Returns what the terms of a daemon pod ask of labels; undefined: nothing. The DaemonSet controller has its node named in each. */
export function termsOfAnyNode(terms: Demands['terms']): Demands['terms'] {
  const left = terms
    ?.map(({ expressions }) => ({ expressions, fields: [] }))
    .filter((term) => term.expressions.length > 0);
  return left?.length === 0 ? undefined : left;
}

function readTerm(term: JsonObject): Term {
  const read = (field: string) =>
    (listAt(term, field) ?? []).map((requirement) => ({
      key: stringAt(requirement, 'key') ?? '',
      operator: stringAt(requirement, 'operator') ?? '',
      values: Array.isArray(requirement.values) ? requirement.values.map(String) : [],
    }));
  return { expressions: read('matchExpressions'), fields: read('matchFields') };
}

/**
 * Returns all reasons why a pod cannot go to a node, in the order of the scheduler's plug-ins (NodeUnschedulable, NodeName,
 * TaintToleration, NodeAffinity). The scheduler itself reports only the first one.
 */
export function obstaclesTo(
  demands: Demands,
  node: Pick<Node, 'name' | 'labels' | 'taints' | 'unschedulable'>,
): Obstacle[] {
  const isTolerated = (taint: Taint) => demands.tolerations.some((toleration) => tolerates(toleration, taint));
  const obstacles: Obstacle[] = [];
  const cordoned = node.unschedulable && !isTolerated(UNSCHEDULABLE);
  if (cordoned) obstacles.push({ kind: 'unschedulable' });
  if (demands.nodeName !== undefined && demands.nodeName !== node.name) obstacles.push({ kind: 'node-name' });
  for (const taint of repellingTaints(node)) {
    // A cordoned node has this taint too. The obstacle `unschedulable` already says so.
    const isReported = cordoned && taint.key === UNSCHEDULABLE.key;
    if (!isReported && !isTolerated(taint)) obstacles.push({ kind: 'taint', taint });
  }
  if (!matchesAffinity(demands, node)) obstacles.push({ kind: 'affinity' });
  return obstacles;
}

/** Returns the scheduler's words for an obstacle (before 1.36 the scheduler names the taint as well). */
export function obstacleText(obstacle: Obstacle): string {
  switch (obstacle.kind) {
    case 'unschedulable':
      return 'node(s) were unschedulable';
    case 'node-name':
      return "node(s) didn't match the requested node name";
    case 'taint':
      return `node(s) had untolerated taint {${obstacle.taint.key}: ${obstacle.taint.value}}`;
    case 'affinity':
      return "node(s) didn't match Pod's node affinity/selector";
    default:
      return obstacle satisfies never;
  }
}

/** Returns the taints of a node that keep pods away: `NoSchedule` and `NoExecute`. */
export function repellingTaints(node: Pick<Node, 'taints'>): Taint[] {
  return (node.taints ?? []).map(readTaint).filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute');
}

/** Follows component-helpers `nodeaffinity.RequiredNodeAffinity.Match`. */
function matchesAffinity({ nodeSelector, terms }: Demands, node: Pick<Node, 'labels' | 'name'>): boolean {
  const isSelected = Object.entries(nodeSelector).every(([key, value]) => labelOf(node.labels, key) === value);
  return isSelected && (terms === undefined || terms.some((term) => meetsTerm(term, node)));
}

/** Whether a node meets a term of the required node affinity. An empty term matches nothing. */
export function meetsTerm({ expressions, fields }: Term, { labels, name }: Pick<Node, 'labels' | 'name'>): boolean {
  if (expressions.length + fields.length === 0) return false;
  return (
    expressions.every((requirement) => meetsLabel(requirement, labelOf(labels, requirement.key))) &&
    fields.every((requirement) => matchesField(requirement, name))
  );
}

/**
 * Whether the value of a label meets a requirement (apimachinery `labels.NewRequirement` and `Requirement.Matches`). An invalid
 * requirement matches nothing, so its whole term matches nothing.
 */
export function meetsLabel({ operator, values }: NodeRequirement, label: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return label !== undefined && values.includes(label);
    case 'NotIn':
      return values.length > 0 && (label === undefined || !values.includes(label));
    case 'Exists':
      return values.length === 0 && label !== undefined;
    case 'DoesNotExist':
      return values.length === 0 && label === undefined;
    case 'Gt':
    case 'Lt': {
      const [given, limit] = [readInteger(label), values.length === 1 ? readInteger(values[0]) : undefined];
      if (given === undefined || limit === undefined) return false;
      return operator === 'Gt' ? given > limit : given < limit;
    }
    default:
      return false;
  }
}

/** The API server accepts only the field `metadata.name`, with exactly one value. */
function matchesField({ key, operator, values }: NodeRequirement, name: string): boolean {
  if (key !== 'metadata.name' || values.length !== 1) return false;
  return operator === 'In' ? values[0] === name : operator === 'NotIn' && values[0] !== name;
}

/** Reads an integer as Go's ParseInt does: 64 bits, decimal. */
function readInteger(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?[0-9]{1,20}$/.test(text)) return undefined;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

function labelOf(labels: Node['labels'], key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/** Returns a requirement as text: `disk In (ssd, nvme)`. */
export function requirementText({ key, operator, values }: NodeRequirement): string {
  return `${key} ${operator}${values.length > 0 ? ` (${values.join(', ')})` : ''}`;
}
