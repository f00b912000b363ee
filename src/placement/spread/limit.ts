import { type Demands, type Obstacle, obstaclesTo } from '../fit.ts';
import { taintText } from '../nodes/managed.ts';
import type { Node } from '../nodes/node.ts';
import { counts, type HardSpread } from './constraint.ts';

/*
 * The scheduler's plug-in PodTopologySpread lets a pod go to a node only where
 *
 *     pods that match in the node's domain + 1 (if the pod itself matches) - the fewest in any domain that counts <= maxSkew
 *
 * By default a node counts although a taint keeps the pod off (`nodeTaintsPolicy: Ignore`), and does not where the pod's node
 * selector or affinity excludes it (`nodeAffinityPolicy: Honor`). So a domain that consists only of nodes with a taint that the
 * pod does not tolerate stays at the fewest for ever, and every other domain takes maxSkew pods more than that. KEP-895 (topology
 * spread), KEP-3022 (minDomains), KEP-3094 (taints and affinity), KEP-3243 (matchLabelKeys).
 */

/** A pod that its author spreads. */
export type SpreadPod = {
  readonly labels: Readonly<Record<string, string>>;
  readonly constraints: readonly HardSpread[];
  /** Its demands on nodes with all that archaware will have written to it. */
  readonly demands: Demands;
  /** The same without archaware's node affinity. */
  readonly authored: Demands;
  /** The same with archaware's node affinity, also in a mode that writes none; undefined if it would have none. */
  readonly narrowed: Demands | undefined;
};

/** A pod that is there already, on its node, in the namespace of the pod that is judged. */
export type OtherPod = { readonly labels: Readonly<Record<string, string>>; readonly nodeName: string };

/** Nodes that count as a domain of their own although the pod can go to none of them. */
export type EmptyDomain = {
  readonly name: string;
  readonly nodes: readonly string[];
  /** The taints that keep the pod off, as `key=value:effect`. */
  readonly taints: readonly string[];
};

/**
 * What lets more pods run: `nodeTaintsPolicy: Honor` in the constraint, `nodeAffinityPolicy: Honor` in it, or a mode with node
 * affinity.
 */
export type SpreadCure = 'honor-taints' | 'honor-affinity' | 'mode-affinity';

/** A constraint that lets only so many pods run, because nodes count that archaware keeps the pods off. */
export type SpreadLimit = {
  readonly constraint: HardSpread;
  /** Sorted by name. */
  readonly empty: readonly EmptyDomain[];
  /** How many such pods can run at most. Whether the nodes have room for them is not considered. */
  readonly most: number;
  /** Each of them helps alone; empty if none does. */
  readonly cures: readonly SpreadCure[];
};

/**
 * Returns the tightest limit on a pod; undefined if there is none. `others`: is called only where they matter; pods of the same
 * workload are not among them.
 */
export type SpreadLimitOf = (pod: SpreadPod, others: () => readonly OtherPod[]) => SpreadLimit | undefined;

const MOST_KNOWN = 32;

type Judged = { readonly node: Node; readonly obstacles: readonly Obstacle[] };

/** Creates the function that says how many pods a constraint lets run on these nodes. `taint`: archaware's. */
export function createSpreadLimits(
  nodes: readonly Node[],
  taint: { readonly key: string; readonly effect: string },
): SpreadLimitOf {
  const known = new Map<string, readonly Judged[]>();
  function judged(demands: Demands): readonly Judged[] {
    // Thousands of workloads share a few demands.
    const key = JSON.stringify(demands);
    const before = known.get(key);
    if (before !== undefined) return before;
    const found = nodes.map((node) => ({ node, obstacles: obstaclesTo(demands, node) }));
    // Each entry is as long as the cluster.
    if (known.size === MOST_KNOWN) known.clear();
    known.set(key, found);
    return found;
  }
  const isOurs = (obstacle: Obstacle) =>
    obstacle.kind === 'taint' && obstacle.taint.key === taint.key && obstacle.taint.effect === taint.effect;

  function limitBy(constraint: HardSpread, pod: SpreadPod, others: () => readonly OtherPod[]): SpreadLimit | undefined {
    const { constraints, demands, authored, narrowed } = pod;
    const places = judged(demands);
    const { empty } = domainsOf(constraint, constraints, places);
    if (empty.size === 0) return undefined;
    const free = new Set(judged(authored).flatMap(({ node, obstacles }) => (obstacles.length === 0 ? node.name : [])));
    const isKeptOffByUs = ({ node, obstacles }: Judged) => obstacles.some(isOurs) || free.has(node.name);
    if (![...empty.values()].some((members) => members.some(isKeptOffByUs))) return undefined;
    const present = others();
    const mostWith = (changed: HardSpread, by: Demands) =>
      mostOf(changed, pod, domainsOf(changed, constraints, judged(by)), present);
    const most = mostWith(constraint, demands);
    if (most === Number.POSITIVE_INFINITY) return undefined;
    const tried: readonly (readonly [SpreadCure, HardSpread, Demands | undefined])[] = [
      ['honor-taints', { ...constraint, honorsTaints: true }, demands],
      ['honor-affinity', { ...constraint, honorsAffinity: true }, demands],
      ['mode-affinity', constraint, narrowed],
    ];
    return {
      constraint,
      empty: [...empty].map(([name, members]) => emptyDomain(name, members)).sort((a, b) => (a.name < b.name ? -1 : 1)),
      most,
      cures: tried.flatMap(([cure, changed, by]) => (by !== undefined && mostWith(changed, by) > most ? cure : [])),
    };
  }

  return (pod, others) => {
    const limits = pod.constraints.flatMap((constraint) => limitBy(constraint, pod, others) ?? []);
    return limits.sort((one, other) => one.most - other.most)[0];
  };
}

type Domains = {
  /** The nodes that count, by their domain. */
  readonly domains: ReadonlyMap<string, readonly Judged[]>;
  /** Those without a node for the pod. */
  readonly empty: ReadonlyMap<string, readonly Judged[]>;
};

function isUsable({ obstacles }: Judged): boolean {
  return obstacles.length === 0;
}

/** Follows `calPreFilterState`: a node counts only if it has the labels of all hard constraints. */
function domainsOf(constraint: HardSpread, all: readonly HardSpread[], places: readonly Judged[]): Domains {
  const domains = new Map<string, Judged[]>();
  for (const place of places) {
    const { labels } = place.node;
    if (!all.every(({ topologyKey }) => Object.hasOwn(labels, topologyKey)) || !isCounted(constraint, place)) continue;
    const name = labels[constraint.topologyKey] ?? '';
    const members = domains.get(name);
    if (members === undefined) domains.set(name, [place]);
    else members.push(place);
  }
  return { domains, empty: new Map([...domains].filter(([, members]) => !members.some(isUsable))) };
}

/** Follows `matchNodeInclusionPolicies`. A cordoned node has a taint. */
function isCounted({ honorsAffinity, honorsTaints }: HardSpread, { obstacles }: Judged): boolean {
  return !obstacles.some(({ kind }) => {
    switch (kind) {
      case 'affinity':
        return honorsAffinity;
      case 'taint':
      case 'unschedulable':
        return honorsTaints;
      case 'node-name':
        return false;
      default:
        return kind satisfies never;
    }
  });
}

/** Returns how many pods like this one can run at most; Infinity if the constraint sets no limit. */
function mostOf(
  constraint: HardSpread,
  { labels }: SpreadPod,
  { domains, empty }: Domains,
  others: readonly OtherPod[],
): number {
  const perNode = new Map<string, number>();
  for (const other of others) {
    if (counts(constraint, other.labels)) perNode.set(other.nodeName, (perNode.get(other.nodeName) ?? 0) + 1);
  }
  const present = (members: readonly Judged[]) =>
    members.reduce((sum, { node }) => sum + (perNode.get(node.name) ?? 0), 0);
  const isTooFew = domains.size < constraint.minDomains;
  const usable = [...domains.values()].filter((members) => members.some(isUsable)).map(present);
  if (!counts(constraint, labels)) {
    // Its own pods do not count, so all find a place or none does.
    const fewest = isTooFew ? 0 : Math.min(...[...domains.values()].map(present));
    return usable.some((count) => count - fewest <= constraint.maxSkew) ? Number.POSITIVE_INFINITY : 0;
  }
  if (empty.size === 0 && !isTooFew) return usable.length === 0 ? 0 : Number.POSITIVE_INFINITY;
  const fewest = isTooFew ? 0 : Math.min(...[...empty.values()].map(present));
  return usable.reduce((sum, count) => sum + Math.max(0, constraint.maxSkew + fewest - count), 0);
}

function emptyDomain(name: string, members: readonly Judged[]): EmptyDomain {
  const taints = members.flatMap(({ obstacles }) =>
    obstacles.flatMap((obstacle) => (obstacle.kind === 'taint' ? taintText(obstacle.taint) : [])),
  );
  return { name, nodes: members.map(({ node }) => node.name).sort(), taints: [...new Set(taints)].sort() };
}
