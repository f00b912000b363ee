import { type JsonObject, objectAt } from '../../kit/json.ts';
import { type Demands, obstaclesTo, readDemands } from '../fit.ts';
import { onlySchedulable } from '../images.ts';
import { taintText } from '../nodes/managed.ts';
import { type Node, nodeArchitecture } from '../nodes/node.ts';
import { isDaemonSet, isOfKubernetes, type Owner, replaceAdvice, shownKind } from '../objects/kinds.ts';
import type { Pod } from '../objects/pod.ts';
import { writersOf, wroteTolerations } from '../objects/pod-record.ts';
import { asOurs, tolerates } from '../patch/tolerations.ts';
import { onlyObserves, wantedTolerations } from '../placing.ts';
import type { Settings } from '../settings.ts';
import type { WrongNodeFinding } from './judge.ts';
import { whatLies } from './note.ts';

/** The facts for which the whole pod must be read, beyond what the watch keeps. */
export type Whole = {
  /** Whether the author, not the scheduler, set `spec.nodeName`: then the template names the node too. */
  readonly namesNode: boolean;
  /** Whether archaware wrote the tolerations, so that those of its form are its own. */
  readonly toleratesByUs: boolean;
  readonly demands: Demands;
};

/** Reads these facts from a pod as the API server sent it. A binding by the scheduler leaves no entry in `managedFields`. */
export function readWhole(object: JsonObject): Whole {
  const namesNode = writersOf(object, 'f:nodeName').length > 0;
  return { namesNode, toleratesByUs: wroteTolerations(object), demands: readDemands(objectAt(object, 'spec')) };
}

/** The state of the cluster on which an eviction depends. */
export type EvictionSurroundings = {
  readonly architectures: readonly string[];
  readonly nodes: Iterable<Node>;
  /** The tolerations of the template of the pod's DaemonSet; undefined if it has no DaemonSet, or an unknown one. */
  readonly daemonTolerations: readonly JsonObject[] | undefined;
};

/**
 * Returns why a pod may not be evicted from a wrong node, as text for its Event; undefined: it may be evicted. The conditions: it
 * is proved that the pod does not run there, its owner creates another one, another node would take that one, and a taint keeps
 * it off this node. A daemon pod needs no other node; its template must no longer tolerate this one. `whole`: undefined before
 * the whole pod was read. Then all tolerations of archaware's form count as archaware's, and no other node is looked for.
 */
export function whyNotEvicted(
  pod: Pick<Pod, 'owner' | 'tolerations'>,
  finding: WrongNodeFinding,
  node: Pick<Node, 'name' | 'taints'> & { readonly architecture: string },
  { architectures: cluster, nodes, daemonTolerations }: EvictionSurroundings,
  settings: Pick<Settings, 'mode' | 'taints' | 'schedulable' | 'onWrongNode'>,
  whole: Whole | undefined,
): string | undefined {
  // What is wrong with the image concerns its author, whether or not pods may be evicted.
  if (finding.verdict === 'says-it-runs') return whatLies(finding, node.architecture);
  if (settings.onWrongNode === 'warn') return `pods.onWrongNode is warn${stepOf(pod.owner, settings)}`;
  const unproved = whyNotProved(finding);
  if (unproved !== undefined) return unproved;
  const { taints } = settings;
  const { key, effect } = taints;
  const keptOff = { key, value: node.architecture, effect: 'NoSchedule' };
  const text = taintText(keptOff);
  const isKeptOff =
    taints.manage &&
    (node.taints ?? []).some(
      (taint) => taint.key === key && taint.value === keptOff.value && taint.effect === keptOff.effect,
    );
  const notKeptOff = `node ${node.name} has no taint ${text} that would keep it off`;
  if (isDaemonSet(pod.owner)) {
    if (!isKeptOff) return notKeptOff;
    const staysOff = daemonTolerations !== undefined && !daemonTolerations.some((entry) => tolerates(entry, keptOff));
    return staysOff ? undefined : 'its DaemonSet would create another one here';
  }
  const { architectures } = finding.known;
  if (architectures === undefined) return 'the platforms of its images are not known for certain';
  if (architectures.includes(node.architecture)) {
    return `its images now have ${node.architecture}, so it could come back here`;
  }
  const unreturning = whyNotBroughtBack(pod.owner);
  if (unreturning !== undefined) return unreturning;
  const possible = onlySchedulable(architectures, settings);
  if (!cluster.some((name) => possible.includes(name))) return 'no node of the cluster runs all of its images';
  if (!isKeptOff) return notKeptOff;
  const wrong = [node.architecture, ...cluster].filter((name) => !architectures.includes(name));
  // What the next pod has before archaware adds anything.
  const isOwn = (entry: JsonObject) => whole?.toleratesByUs === false || asOurs(entry, taints) === undefined;
  const own = (pod.tolerations ?? []).filter(isOwn);
  const tolerated = wrong.find((value) => own.some((entry) => tolerates(entry, { key, value, effect })));
  if (tolerated !== undefined) return `its own tolerations let it onto nodes of ${tolerated}, so it could come back`;
  if (whole === undefined) return undefined;
  if (whole.namesNode)
    return 'its template names the node (spec.nodeName), so it would come back: remove that, then delete the pod';
  // The next pod is not bound, so this pod's node does not count.
  const tolerations = [...own, ...wantedTolerations(settings, possible)];
  const demands: Demands = { ...whole.demands, nodeName: undefined, tolerations };
  return fitsOneOf(nodes, possible, demands)
    ? undefined
    : `no node of ${possible.join(' or ')} would take another one: cordoned, tainted, or not what its nodeSelector and affinity ask for`;
}

/** Returns what moves a pod that is only warned about; empty where nothing would keep the next one off this node. */
function stepOf(owner: Pod['owner'], settings: Pick<Settings, 'mode'>): string {
  if (onlyObserves(settings)) return '';
  // The watch leaves out `managedFields`, so it is not known here whether the author or a template named the node.
  if (owner === undefined || owner.kind === 'Job')
    return ` (${replaceAdvice(owner)}, without spec.nodeName if it was given one)`;
  const { kind } = owner;
  if (isDaemonSet(owner)) return '';
  return ` (delete the pod: its ${kind} creates another; if its template has spec.nodeName, remove that first)`;
}

const BROUGHT_BACK: readonly string[] = ['ReplicaSet', 'StatefulSet', 'ReplicationController'];

/** Returns why an evicted pod may not come back; undefined if its owner creates another one. Not for daemon pods. */
function whyNotBroughtBack(owner: Owner | undefined): string | undefined {
  if (owner === undefined) return 'bare pod: nothing would bring it back';
  const isOfGroup = isOfKubernetes(owner);
  if (isOfGroup && BROUGHT_BACK.includes(owner.kind)) return undefined;
  if (isOfGroup && owner.kind === 'Job') return 'its Job would count it as failed';
  return `owned by a ${shownKind(owner)}, which may not bring it back`;
}

/** Whether a node of one of these architectures takes a pod with these demands. */
export function fitsOneOf(nodes: Iterable<Node>, architectures: readonly string[], demands: Demands): boolean {
  for (const node of nodes) {
    const architecture = nodeArchitecture(node);
    if (architecture === undefined || !architectures.includes(architecture)) continue;
    // A cordoned node does not count, even if the pod tolerates its taint.
    if (!node.deleting && !node.unschedulable && obstaclesTo(demands, node).length === 0) return true;
  }
  return false;
}

/** Every verdict is named: a new one must not lead to an eviction by itself. */
function whyNotProved({ verdict, container }: WrongNodeFinding): string | undefined {
  switch (verdict) {
    case 'does-not-run':
    case 'says-it-runs':
      return undefined;
    case 'unproved':
      return container.pulled === undefined
        ? `the status of container ${container.name} has no digest that proves which image it runs`
        : `it is not known for certain which image container ${container.name} runs (${container.pulled.image})`;
    default:
      return verdict satisfies never;
  }
}
