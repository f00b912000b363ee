import { ARCHITECTURE_LABEL, OLD_ARCHITECTURE_LABEL } from '../../names.ts';
import { type Demands, isPassing, type Obstacle, obstaclesTo } from '../fit.ts';
import { isOfKind, type Node, nodeArchitecture } from '../nodes/node.ts';
import { architectureAsked } from '../objects/asked-platform.ts';
import { usesTaints } from '../placing.ts';
import type { Settings } from '../settings.ts';
import type { Reason } from './readiness-states.ts';
import { unmetBy } from './unmet.ts';

/** A node that pods may go to, as the report judges it. */
type NodePlace = Pick<Node, 'name' | 'labels' | 'taints' | 'unschedulable'>;

/** What keeps a pod with these demands away from every node of a target; empty if a node fits. */
export type PinsOf = (demands: Demands, target: string) => readonly Reason[];

/** Labels that say which machine a node is: a node of another architecture would have other values. */
const OF_MACHINE: readonly string[] = [
  'kubernetes.io/hostname',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/instance-type',
];

/**
 * Creates the function that says what pins a pod. It goes by the nodes of the target, as `placement/fit` does, without what
 * passes (cordons, pressure) and without archaware's own taint, which the pod would tolerate. Where the cluster has no node of
 * the target, a copy of each of its nodes with that architecture stands for one, without the labels that name the machine.
 * Without nodes, only what a pod asks about the architecture or a node's name counts.
 */
export function createPins(nodes: readonly Node[], settings: Settings): PinsOf {
  const places = new Map<string, readonly NodePlace[]>();
  const known = new Map<string, readonly Reason[]>();

  function placesOf(target: string): readonly NodePlace[] {
    const found = places.get(target) ?? placesFor(target, nodes, settings);
    places.set(target, found);
    return found;
  }

  return (demands, target) => {
    // Thousands of workloads share a few demands.
    const key = JSON.stringify([target, demands]);
    const found =
      known.get(key) ?? (nodes.length === 0 ? withoutNodes(demands, target) : pins(demands, target, placesOf(target)));
    known.set(key, found);
    return found;
  };
}

function placesFor(target: string, nodes: readonly Node[], settings: Settings): NodePlace[] {
  const there = nodes.filter((node) => !node.deleting);
  const own = there.filter((node) => nodeArchitecture(node) === target);
  const isStandIn = own.length === 0;
  // In the mode `affinity` archaware gives no tolerations.
  const isOurs = usesTaints(settings) ? isOfKind(settings.taints) : () => false;
  const all = (isStandIn ? there : own).map(({ name, labels, taints }) => ({
    name: isStandIn ? '' : name,
    labels: isStandIn ? labelsOfCopy(labels, target) : labels,
    taints: taints?.filter((taint) => !isPassing(taint) && !isOurs(taint)),
    unschedulable: false,
  }));
  return [...new Map(all.map((place) => [JSON.stringify([place.name, place.labels, place.taints]), place])).values()];
}

function labelsOfCopy(labels: NodePlace['labels'], target: string): NodePlace['labels'] {
  const kept = Object.entries(labels).filter(([key]) => !OF_MACHINE.includes(key));
  return { ...Object.fromEntries(kept), [ARCHITECTURE_LABEL]: target, [OLD_ARCHITECTURE_LABEL]: target };
}

function pins(demands: Demands, target: string, places: readonly NodePlace[]): Reason[] {
  let nearest: { place: NodePlace; obstacles: Obstacle[] } | undefined;
  for (const place of places) {
    const obstacles = obstaclesTo(demands, place);
    if (obstacles.length === 0) return [];
    if (nearest === undefined || obstacles.length < nearest.obstacles.length) nearest = { place, obstacles };
  }
  return nearest === undefined
    ? withoutNodes(demands, target)
    : nearest.obstacles.flatMap((obstacle) => reasonsOf(obstacle, demands, target, nearest.place));
}

function reasonsOf(obstacle: Obstacle, demands: Demands, target: string, place: NodePlace): Reason[] {
  switch (obstacle.kind) {
    case 'unschedulable':
      return [];
    case 'node-name':
      return [{ kind: 'node-name', text: `it names the node ${demands.nodeName}` }];
    case 'taint': {
      const { key, value, effect } = obstacle.taint;
      return [{ kind: 'taint', text: `it does not tolerate the taint ${key}=${value}:${effect} of ${target} nodes` }];
    }
    case 'affinity':
      return unmet(demands, place);
    default:
      return obstacle satisfies never;
  }
}

function unmet(demands: Demands, place: NodePlace): Reason[] {
  const selected = unmetBy({ ...demands, terms: undefined }, place).map(({ text }) => text);
  const required = unmetBy({ ...demands, nodeSelector: {} }, place).map(({ text }) => text);
  return [...asked('node-selector', selected), ...asked('node-affinity', required)];
}

function asked(kind: 'node-selector' | 'node-affinity', texts: readonly string[]): Reason[] {
  const part = kind === 'node-selector' ? 'nodeSelector' : 'node affinity';
  return texts.length === 0 ? [] : [{ kind, text: `its ${part} asks for ${texts.join(', ')}` }];
}

function withoutNodes(demands: Demands, target: string): Reason[] {
  const { nodeName } = demands;
  const pinned: Reason[] = nodeName === undefined ? [] : [{ kind: 'node-name', text: `it names the node ${nodeName}` }];
  const wishes = [
    ['node-selector', { ...demands, terms: undefined }],
    ['node-affinity', { ...demands, nodeSelector: {} }],
  ] as const;
  for (const [kind, part] of wishes) {
    const wish = architectureAsked(part);
    if (wish === undefined || wish.allows(target)) continue;
    pinned.push(...asked(kind, [wish.named.join(' or ') || 'another architecture']));
  }
  return pinned;
}
