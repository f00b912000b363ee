import type { JsonObject } from '../../kit/json.ts';
import { isArchitectureName } from '../../kit/platform.ts';
import type { Demands } from '../fit.ts';
import type { DaemonSet } from '../objects/daemonset.ts';
import { isDaemonSet, isOfKubernetes, shownKind } from '../objects/kinds.ts';
import { type Owner, type Pod, readPod } from '../objects/pod.ts';
import { readPodRecord } from '../objects/pod-record.ts';
import { wroteTolerations } from '../objects/written.ts';
import { asOurs, isSameToleration, type Toleration, tolerates, tolerationText } from '../patch/tolerations.ts';
import { lostTolerations, unrecordedTolerations } from '../rollout/lost-record.ts';
import { type TemplateDecision, withoutOurs } from '../rollout/template.ts';
import type { Settings } from '../settings.ts';
import { type Fitting, kindsOf, successorDemands, successorOf } from './successor.ts';

/** Decides a template without archaware's tolerations: those that a record lists, and those whose record is lost. */
export function cleanTemplate(
  daemonSet: Pick<DaemonSet, 'recorded' | 'template' | 'entry' | 'isListApplied'>,
  taint: Pick<Settings['taints'], 'key' | 'effect'>,
): TemplateDecision {
  return withoutOurs(daemonSet, lostTolerations(daemonSet, taint));
}

/**
 * Returns why `clean` leaves tolerations of archaware's form in a template; undefined if there are none. They are harmless.
 */
export function whyLeftInTemplate(
  daemonSet: Pick<DaemonSet, 'recorded' | 'template' | 'entry' | 'isListApplied'>,
  taint: Pick<Settings['taints'], 'key' | 'effect'>,
): string | undefined {
  const left = unrecordedTolerations(daemonSet, taint);
  if (left.length === 0 || cleanTemplate(daemonSet, taint).kind === 'set') return undefined;
  return `tolerates ${left.map(tolerationText).join(', ')} without a record of archaware: its author may have written it`;
}

/** What `clean` does about a pod that has archaware's tolerations. */
export type PodCleaning =
  | { readonly kind: 'none' }
  /** The pod is evicted; its owner creates a new one without the tolerations. */
  | { readonly kind: 'replace' }
  /** The DaemonSet replaces the pod by itself once its template is restored. */
  | { readonly kind: 'rolls' }
  /** The pod stays: its tolerations are harmless, and its successor may not run. */
  | { readonly kind: 'keep'; readonly reason: string }
  /** The pod stays, because nothing may bring it back. */
  | { readonly kind: 'leave'; readonly reason: string };

/** A DaemonSet after its template was restored, and the nodes on which that template lets pods start. */
export type RestoredDaemonSet = { readonly daemonSet: DaemonSet; readonly demands: Demands };

/** The cluster as far as the decision about a pod depends on it. */
export type CleanedCluster = {
  /** The present and earlier taints of archaware, for daemon pods. */
  readonly keys: readonly { readonly key: string; readonly effect: string }[];
  /** Returns a DaemonSet by its uid. */
  readonly daemonSetOf: (uid: string) => RestoredDaemonSet | undefined;
  readonly fitting: Fitting;
};

/** The owners that create a pod again and say how many they want. */
const BROUGHT_BACK: readonly string[] = ['ReplicaSet', 'StatefulSet', 'ReplicationController'];

/**
 * Decides what `clean` does about a pod. Nobody can remove tolerations from a pod, so a pod that has archaware's must be
 * replaced, unless its successor could start on a node that does not run its images. Archaware's tolerations and affinity say on which
 * architectures they run; no registry is asked. `pod`: what `readPod` made of the object.
 */
export function cleanPod(object: JsonObject, cluster: CleanedCluster, pod: Pod = readPod(object)): PodCleaning {
  if (pod.deleting || pod.phase === 'Succeeded' || pod.phase === 'Failed') return { kind: 'none' };
  const tolerations = pod.tolerations ?? [];
  if (isDaemonSet(pod.owner)) {
    const ours = tolerations.flatMap((toleration) => cluster.keys.flatMap((key) => asOurs(toleration, key) ?? []));
    return cleanDaemonPod(ours, tolerations, cluster.daemonSetOf(pod.owner.uid), cluster);
  }
  const ours = oursOf(object, tolerations);
  if (ours.length === 0) return { kind: 'none' };
  const unreturning = whyNotBroughtBack(pod.owner);
  if (unreturning !== undefined) return { kind: 'leave', reason: unreturning };
  const reason = whyKept(object, pod, ours, cluster.fitting);
  return reason === undefined ? { kind: 'replace' } : { kind: 'keep', reason };
}

/** Returns why an evicted pod may not come back; undefined if its owner creates another one. Not for daemon pods. */
export function whyNotBroughtBack(owner: Owner | undefined): string | undefined {
  if (owner === undefined) return 'bare pod: nothing would bring it back';
  const isOfGroup = isOfKubernetes(owner);
  if (isOfGroup && BROUGHT_BACK.includes(owner.kind)) return undefined;
  if (isOfGroup && owner.kind === 'Job') return 'its Job would count it as failed';
  return `owned by a ${shownKind(owner)}, which may not bring it back`;
}

/** Returns the pod's tolerations that the controller or admission wrote. */
function oursOf(object: JsonObject, tolerations: readonly JsonObject[]): readonly JsonObject[] {
  // Any taint key counts: only the pod itself remembers a key that is no longer in the configuration.
  const written = tolerations.some(hasOurForm) && wroteTolerations(object) ? tolerations.filter(hasOurForm) : [];
  if (written.length > 0) return written;
  // A forged record only gets its author's pod replaced.
  const admitted = (readPodRecord(object)?.tolerations ?? []).filter(hasOurForm);
  return tolerations.filter((toleration) => admitted.some((ours) => isSameToleration(toleration, ours)));
}

/** Returns why the successor of a pod may not run, so that the pod is kept; undefined if it runs wherever it starts. */
function whyKept(
  object: JsonObject,
  { tolerations = [], written, nodeName }: Pick<Pod, 'tolerations' | 'written' | 'nodeName'>,
  ours: readonly JsonObject[],
  fitting: Fitting,
): string | undefined {
  if (written === undefined)
    return 'an image of it was changed since archaware placed it, so its architectures are not known';
  const tolerated = runsOn(tolerations, kindsOf(ours));
  const required = written.architectures;
  const runs = (architecture: string) => tolerated(architecture) && (required?.includes(architecture) ?? true);
  const successor = successorOf(fitting(successorDemands(object)), runs);
  switch (successor.kind) {
    case 'right':
      return undefined;
    case 'wrong':
      return `a new pod could start on a node of ${successor.architectures.join(' or ')}, for which its images have no build`;
    case 'nowhere':
      // A pod without a node loses nothing.
      return nodeName === undefined ? undefined : 'no node would fit a new pod';
    default:
      return successor satisfies never;
  }
}

/**
 * Returns whether a pod with these tolerations was placed on nodes of an architecture. With several keys of archaware, each must
 * allow it: an earlier key may stand for earlier images.
 */
function runsOn(
  tolerations: readonly JsonObject[],
  kinds: readonly { readonly key: string; readonly effect: string }[],
): (architecture: string) => boolean {
  return (value) => kinds.every((kind) => tolerations.some((toleration) => tolerates(toleration, { ...kind, value })));
}

/** Decides about a daemon pod. Tolerations that the restored template still has belong to the author. */
function cleanDaemonPod(
  ours: readonly Toleration[],
  tolerations: readonly JsonObject[],
  restored: RestoredDaemonSet | undefined,
  { fitting }: CleanedCluster,
): PodCleaning {
  // A daemon pod without its DaemonSet is removed by the garbage collector.
  if (restored === undefined) return { kind: 'none' };
  const { daemonSet, demands } = restored;
  const template = daemonSet.template.tolerations ?? [];
  if (ours.every((entry) => template.some((own) => isSameToleration(own, entry)))) return { kind: 'none' };
  // Its successor starts on the same node.
  if (daemonSet.rolledOut) return { kind: 'replace' };
  if (daemonSet.updateStrategy === 'OnDelete') {
    return { kind: 'leave', reason: 'its DaemonSet replaces pods only when they are deleted' };
  }
  const successor = successorOf(fitting(demands), runsOn(tolerations, kindsOf(ours)));
  if (successor.kind !== 'wrong') return { kind: 'rolls' };
  const wrong = successor.architectures.join(' or ');
  return {
    kind: 'keep',
    reason: `its DaemonSet also starts pods on nodes of ${wrong}, for which its images have no build, so its rollout may stop before it replaces this pod`,
  };
}

/** Whether a toleration has archaware's form, under any key. */
function hasOurForm(toleration: JsonObject): boolean {
  const { key, value, effect } = toleration;
  if (typeof key !== 'string' || typeof value !== 'string' || !isArchitectureName(value)) return false;
  const effects = ['NoSchedule', 'PreferNoSchedule'];
  return effects.some((possible) => effect === possible && asOurs(toleration, { key, effect: possible }) !== undefined);
}
