import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import { FIELD_MANAGER } from '../../names.ts';
import { type Demands, obstaclesTo, readDemands } from '../fit.ts';
import { cleanNode, type NodeChange } from '../nodes/decide-node.ts';
import { type Node, nodeArchitecture } from '../nodes/node.ts';
import { readPodRecord } from '../objects/pod-record.ts';
import { writersOf } from '../objects/written.ts';
import type { Settings } from '../settings.ts';

/** A node as a new pod will find it once `clean` has removed archaware's taint and labels. */
type LaterNode = Pick<Node, 'name' | 'labels' | 'taints' | 'unschedulable'> & { readonly architecture: string };

/**
 * Returns the nodes as they are after `clean`. What comes and goes by itself does not count: a cordon, and Kubernetes' own taints. A
 * node whose kubelet has not reported an architecture yet takes no pods, and is left out.
 */
export function laterNodes(nodes: readonly Node[], settings: Settings['taints']): LaterNode[] {
  return nodes.flatMap((node) => {
    const architecture = nodeArchitecture(node);
    if (architecture === undefined || node.deleting) return [];
    const decision = cleanNode(node, settings);
    const { taints, removedLabels: removed }: Pick<NodeChange, 'taints' | 'removedLabels'> =
      decision.kind === 'set' ? decision : { taints: node.taints ?? [], removedLabels: [] };
    const lasting = taints.filter(({ key }) => typeof key !== 'string' || !key.startsWith('node.kubernetes.io/'));
    const labels =
      removed.length === 0
        ? node.labels
        : Object.fromEntries(Object.entries(node.labels).filter(([name]) => !removed.includes(name)));
    return { name: node.name, labels, taints: lasting, unschedulable: false, architecture };
  });
}

/** Where the pod that follows an evicted one may start. */
type Successor =
  /** Only on nodes that run its images. */
  | { readonly kind: 'right' }
  /** Also on nodes of these architectures, which do not run its images. */
  | { readonly kind: 'wrong'; readonly architectures: readonly string[] }
  /** On no node: as far as labels, taints and architecture say, it would stay Pending. */
  | { readonly kind: 'nowhere' };

/** Returns the architectures of the nodes that a pod with these demands may use. */
export type Fitting = (demands: Demands) => ReadonlySet<string>;

/** Returns the architectures that fit, and remembers them: the pods of a workload have the same demands, and there may be 100,000. */
export function createFitting(nodes: readonly LaterNode[]): Fitting {
  const byArchitecture = new Map<string, LaterNode[]>();
  for (const node of nodes) {
    const group = byArchitecture.get(node.architecture) ?? [];
    group.push(node);
    byArchitecture.set(node.architecture, group);
  }
  const known = new Map<string, ReadonlySet<string>>();
  return (demands) => {
    const key = JSON.stringify(demands);
    const before = known.get(key);
    if (before !== undefined) return before;
    const fitting = [...byArchitecture].filter(([, group]) =>
      group.some((node) => obstaclesTo(demands, node).length === 0),
    );
    const found = new Set(fitting.map(([architecture]) => architecture));
    known.set(key, found);
    return found;
  };
}

/** Decides where a successor may start. `runsOn`: whether the images of the pod run on nodes of an architecture. */
export function successorOf(fitting: ReadonlySet<string>, runsOn: (architecture: string) => boolean): Successor {
  const wrong = [...fitting].filter((architecture) => !runsOn(architecture));
  if (wrong.length > 0) return { kind: 'wrong', architectures: wrong.sort() };
  return fitting.size === 0 ? { kind: 'nowhere' } : { kind: 'right' };
}

/**
 * Returns the demands of the pod that follows an evicted one: the same without archaware's node affinity, and not bound. If it is
 * not recorded what archaware added to the affinity, none of it counts.
 */
export function successorDemands(object: JsonObject): Demands {
  const demands = readDemands(objectAt(object, 'spec'));
  return { ...demands, nodeName: undefined, terms: authoredTerms(object, demands.terms) };
}

function authoredTerms(object: JsonObject, terms: Demands['terms']): Demands['terms'] {
  if (terms === undefined) return undefined;
  if (writersOf(object, 'f:affinity').includes(FIELD_MANAGER)) return undefined;
  const added = new Set(readPodRecord(object)?.required.map(({ key }) => key) ?? []);
  if (added.size === 0) return terms;
  const authored = terms.map((term) => ({
    ...term,
    expressions: term.expressions.filter(({ key, operator }) => operator !== 'In' || !added.has(key)),
  }));
  // A term with nothing else in it was archaware's as a whole. Its author allows every node.
  const isEmpty = ({ expressions, fields }: (typeof terms)[number]) => expressions.length + fields.length === 0;
  return authored.some((term, index) => isEmpty(term) && !isEmpty(terms[index] ?? term)) ? undefined : authored;
}

/** Returns the demands of a DaemonSet's pods, without the node that each of them is for. */
export function templateDemands(daemonSet: JsonObject): Demands {
  return { ...readDemands(objectAt(objectAt(objectAt(daemonSet, 'spec'), 'template'), 'spec')), nodeName: undefined };
}

/** Returns the kinds of taint (`key` and `effect`) of some tolerations, each once. */
export function kindsOf(tolerations: readonly JsonObject[]): { readonly key: string; readonly effect: string }[] {
  const kinds = tolerations.map((toleration) => ({
    key: stringAt(toleration, 'key') ?? '',
    effect: stringAt(toleration, 'effect') ?? '',
  }));
  return [...new Map(kinds.map((kind) => [`${kind.key}:${kind.effect}`, kind])).values()];
}
