import { type Demands, obstaclesTo, readDemands } from './fit.ts';
import { onlySchedulable } from './images.ts';
import { type JsonObject, objectAt } from './json.ts';
import { type Node, nodeArchitecture, taintText } from './node.ts';
import { wantedTolerations } from './placing.ts';
import type { Pod } from './pod.ts';
import type { Settings } from './settings.ts';
import { asOurs, tolerates } from './tolerations.ts';
import { whyNotBroughtBack } from './undo.ts';
import { writersOf, wroteTolerations } from './written.ts';
import type { WrongPlace } from './wrong-place.ts';

/** What only the whole pod says. */
export type Whole = {
  /** Whether its node was named when it was made, and not by the scheduler: then its template names it. */
  readonly namesNode: boolean;
  /** Whether we wrote its tolerations, so that those of our form are ours. */
  readonly toleratesByUs: boolean;
  readonly demands: Demands;
};

/** Reads it from a pod as the API server sent it. A binding is in nobody's `managedFields`. */
export function readWhole(object: JsonObject): Whole {
  return {
    namesNode: writersOf(object, 'f:nodeName').length > 0,
    toleratesByUs: wroteTolerations(object),
    demands: readDemands(objectAt(object, 'spec')),
  };
}

/** What of the cluster decides whether a pod may go. */
export type Surroundings = {
  readonly architectures: readonly string[];
  readonly nodes: Iterable<Node>;
  /** What the template of the pod's DaemonSet tolerates; undefined where there is none, or none is known. */
  readonly daemonTolerations: readonly JsonObject[] | undefined;
};

/**
 * Why a pod may not be evicted from a wrong node, in words for its Event; undefined: it may. It must be proved that it does not
 * run there; it must have an owner that makes another one, a node that this one fits, and a taint that keeps it off
 * this node. A daemon pod needs no other node: its template must no longer tolerate this one. `whole`: undefined before the
 * whole pod was read; then what is of our form counts as ours, and no node is looked for.
 */
export function whyNotEvicted(
  pod: Pick<Pod, 'owner' | 'tolerations'>,
  place: WrongPlace,
  node: Pick<Node, 'name' | 'taints'> & { readonly architecture: string },
  { architectures: cluster, nodes, daemonTolerations }: Surroundings,
  settings: Pick<Settings, 'mode' | 'taints' | 'schedulable' | 'onWrongNode'>,
  whole: Whole | undefined,
): string | undefined {
  if (settings.onWrongNode === 'warn') return 'pods.onWrongNode is warn';
  const unproved = whyNotProved(place, node.architecture);
  if (unproved !== undefined) return unproved;
  const { taints } = settings;
  const keptOff = { key: taints.key, value: node.architecture, effect: 'NoSchedule' };
  const isKeptOff =
    taints.manage &&
    (node.taints ?? []).some(
      ({ key, value, effect }) => key === keptOff.key && value === keptOff.value && effect === keptOff.effect,
    );
  const notKeptOff = `node ${node.name} has no taint ${taintText(keptOff)} that would keep it off`;
  if (pod.owner?.kind === 'DaemonSet') {
    if (!isKeptOff) return notKeptOff;
    const staysOff = daemonTolerations !== undefined && !daemonTolerations.some((entry) => tolerates(entry, keptOff));
    return staysOff ? undefined : 'its DaemonSet would make another one here';
  }
  const { architectures } = place.known;
  if (architectures === undefined) return 'it is not known for certain what its images run on';
  if (architectures.includes(node.architecture)) {
    return `by now its images say that they run on ${node.architecture}, so it could come back here`;
  }
  const unreturning = whyNotBroughtBack(pod.owner);
  if (unreturning !== undefined) return unreturning;
  const possible = onlySchedulable(architectures, settings);
  if (!cluster.some((name) => possible.includes(name))) return 'no node of the cluster runs all of its images';
  if (!isKeptOff) return notKeptOff;
  const wrong = [node.architecture, ...cluster].filter((name) => !architectures.includes(name));
  const own = ownTolerations(pod.tolerations ?? [], taints, whole?.toleratesByUs ?? true);
  const tolerated = toleratedOf(own, wrong, taints);
  if (tolerated !== undefined) return `its own tolerations let it onto nodes of ${tolerated}, so it could come back`;
  if (whole === undefined) return undefined;
  if (whole.namesNode) return 'its template names the node (spec.nodeName), so it would come back';
  // The binding is this pod's alone.
  const tolerations = [...own, ...wantedTolerations(settings, possible)];
  const demands: Demands = { ...whole.demands, nodeName: undefined, tolerations };
  return fitsOneOf(nodes, possible, demands)
    ? undefined
    : `no node of ${possible.join(' or ')} would take another one: cordoned, tainted, or not what its nodeSelector and affinity ask for`;
}

function whyNotProved(place: WrongPlace, architecture: string): string | undefined {
  const { verdict, container } = place;
  switch (verdict) {
    case 'does-not-run':
      return undefined;
    case 'says-it-runs':
      return whatLies(place, architecture);
    case 'unproved':
      return container.pulled === undefined
        ? `the status of container ${container.name} names no digest that would prove what it runs`
        : `it is not known for certain what container ${container.name} runs (${container.pulled.image})`;
    default:
      return verdict satisfies never;
  }
}

/** What is wrong where an image has the node's architecture and its container is refused all the same, and what to do. */
export function whatLies({ container, pulled }: WrongPlace, architecture: string): string {
  if (container.trouble === 'exec-format-error') {
    return `its image says that it runs on ${architecture}, but it does not (it holds other files, or starts a script without #!): rebuild it, or say in images.overrides what it runs on`;
  }
  return pulled === undefined
    ? `all that is known of its images says that they run on ${architecture}: the next pull may succeed`
    : `what it ran before has ${architecture}, what its tag names by now cannot be pulled here: push it for ${architecture}, or delete the pod`;
}

function fitsOneOf(nodes: Iterable<Node>, architectures: readonly string[], demands: Demands): boolean {
  for (const node of nodes) {
    const architecture = nodeArchitecture(node);
    if (architecture === undefined || !architectures.includes(architecture)) continue;
    // A pod that tolerates the taint of cordoned nodes is not sent there for that.
    if (!node.deleting && !node.unschedulable && obstaclesTo(demands, node).length === 0) return true;
  }
  return false;
}

/** The tolerations that the next pod has before anybody adds to them. */
function ownTolerations(
  tolerations: readonly JsonObject[],
  { key, effect }: Settings['taints'],
  oursAreOurs: boolean,
): readonly JsonObject[] {
  return oursAreOurs ? tolerations.filter((entry) => asOurs(entry, { key, effect }) === undefined) : tolerations;
}

/** The first of the architectures whose taint one of the tolerations tolerates. */
function toleratedOf(
  tolerations: readonly JsonObject[],
  architectures: readonly string[],
  { key, effect }: Settings['taints'],
): string | undefined {
  return architectures.find((value) => tolerations.some((entry) => tolerates(entry, { key, value, effect })));
}
