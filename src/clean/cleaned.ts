import { isSame, type JsonObject } from '../kit/json.ts';
import { isArchitectureName } from '../kit/platform.ts';
import { readTaint, taintKind } from '../placement/nodes/node.ts';
import { hasEnded } from '../placement/objects/containers.ts';
import type { DaemonSet } from '../placement/objects/daemonset.ts';
import { isDaemonSet, isOfKubernetes, type Owner, shownKind } from '../placement/objects/kinds.ts';
import { type Pod, readPod } from '../placement/objects/pod.ts';
import { readPodRecord, wroteTolerations } from '../placement/objects/pod-record.ts';
import { asOurs, type Toleration, tolerates, tolerationText } from '../placement/patch/tolerations.ts';
import {
  lostTolerations,
  type TemplateDecision,
  unrecordedTolerations,
  withoutOurs,
} from '../placement/rollout/template.ts';
import type { Settings } from '../placement/settings.ts';

/** Decides a template without archaware's tolerations: those that a record lists, and those whose record is lost. */
export function cleanTemplate(
  daemonSet: Pick<DaemonSet, 'recorded' | 'template' | 'entry' | 'isListApplied'>,
  taint: Pick<Settings['taints'], 'key' | 'effect'>,
): TemplateDecision {
  return withoutOurs(daemonSet, lostTolerations(daemonSet, taint));
}

/** Returns why `clean` leaves tolerations of archaware's form in a template; undefined if there are none. They are harmless. */
export function whyLeftInTemplate(
  daemonSet: Pick<DaemonSet, 'recorded' | 'template' | 'entry' | 'isListApplied'>,
  taint: Pick<Settings['taints'], 'key' | 'effect'>,
): string | undefined {
  const left = unrecordedTolerations(daemonSet, taint);
  if (left.length === 0 || cleanTemplate(daemonSet, taint).kind === 'set') return undefined;
  return `tolerates ${left.map(tolerationText).join(', ')} without a record of archaware: its author may have written it`;
}

/** What `clean` does about a pod that has archaware's tolerations or affinity. */
export type PodCleaning =
  | { readonly kind: 'none' }
  /** The pod goes when its owner, a Deployment or a StatefulSet, is restarted. */
  | { readonly kind: 'restart' }
  /** The DaemonSet replaces the pod by itself once its template is restored. */
  | { readonly kind: 'rolls' }
  /** The pod stays. What archaware added to it is harmless. */
  | { readonly kind: 'keep'; readonly reason: string };

/** A DaemonSet once its template is restored. */
export type RestoredDaemonSet = Pick<DaemonSet, 'updateStrategy'> & {
  readonly tolerations: readonly JsonObject[];
  /** Whether the template changes now, so that the DaemonSet replaces its pods. */
  readonly rolls: boolean;
  /** Whether every daemon pod was up to date and available before. */
  readonly wasWhole: boolean;
};

/** The cluster as far as the decision about a pod depends on it. */
export type CleanedCluster = {
  /** The present and earlier taints of archaware, as `key:effect`, for daemon pods. Authors of DaemonSets can record any number. */
  readonly keys: ReadonlySet<string>;
  readonly daemonSetOf: (uid: string) => RestoredDaemonSet | undefined;
  /** The architectures of the nodes. */
  readonly architectures: readonly string[];
};

/** The owners that `clean` can restart; the Deployment of a ReplicaSet is read later. */
const RESTARTED: readonly string[] = ['ReplicaSet', 'StatefulSet'];

/**
 * Decides what `clean` does about a pod. Nobody can remove tolerations or affinity from a pod, so its owner is restarted, unless a new
 * pod could start on a node that does not run its images. Archaware's tolerations and affinity say on which architectures they run; no
 * registry is asked. `pod`: what `readPod` made of the object.
 */
export function cleanPod(object: JsonObject, cluster: CleanedCluster, pod: Pod = readPod(object)): PodCleaning {
  if (pod.deleting || hasEnded(pod.phase)) return { kind: 'none' };
  const tolerations = pod.tolerations ?? [];
  if (isDaemonSet(pod.owner)) {
    const ours = tolerations.flatMap((toleration) => {
      const taint = readTaint(toleration);
      return cluster.keys.has(taintKind(taint)) ? (asOurs(toleration, taint) ?? []) : [];
    });
    return cleanDaemonPod(ours, tolerations, cluster.daemonSetOf(pod.owner.uid), cluster);
  }
  const ours = oursOf(object, tolerations);
  if (ours.length === 0 && pod.written?.architectures === undefined) return { kind: 'none' };
  const reason = whyNotRestarted(pod.owner) ?? whyKept(pod, ours, cluster);
  return reason === undefined ? { kind: 'restart' } : { kind: 'keep', reason };
}

function whyNotRestarted(owner: Owner | undefined): string | undefined {
  if (owner === undefined) return 'bare pod: it has no owner that could be restarted';
  if (isOfKubernetes(owner) && RESTARTED.includes(owner.kind)) return undefined;
  return `owned by a ${shownKind(owner)}, which clean does not restart`;
}

/** Returns the pod's tolerations that the controller or admission wrote. */
function oursOf(object: JsonObject, tolerations: readonly JsonObject[]): readonly JsonObject[] {
  // Any taint key counts: only the pod itself remembers a key that is no longer in the configuration.
  const written = tolerations.some(hasOurForm) && wroteTolerations(object) ? tolerations.filter(hasOurForm) : [];
  if (written.length > 0) return written;
  // A forged record only gets its author's workload restarted.
  const admitted = (readPodRecord(object)?.tolerations ?? []).filter(hasOurForm);
  return tolerations.filter((toleration) => admitted.some((ours) => isSame(toleration, ours)));
}

/** Returns why the owner of a pod is not restarted; undefined if its images run on every architecture of the cluster. */
function whyKept(
  { tolerations = [], written }: Pick<Pod, 'tolerations' | 'written'>,
  ours: readonly JsonObject[],
  { architectures }: CleanedCluster,
): string | undefined {
  if (written === undefined)
    return 'an image of it was changed since archaware placed it, so its architectures are not known';
  const lacking = architectures.filter(
    (name) => !runsOn(tolerations, ours, name) || written.architectures?.includes(name) === false,
  );
  return lacking.length === 0
    ? undefined
    : `a new pod could start on a node of ${lacking.join(' or ')}, for which its images have no build`;
}

/**
 * Returns whether a pod with these tolerations was placed on nodes of an architecture. With several keys of archaware, each must
 * allow it: an earlier key may stand for earlier images.
 */
function runsOn(tolerations: readonly JsonObject[], ours: readonly JsonObject[], value: string): boolean {
  return ours.every(({ key, effect }) => {
    if (typeof key !== 'string' || typeof effect !== 'string') return true;
    return tolerations.some((toleration) => tolerates(toleration, { key, effect, value }));
  });
}

/** Decides about a daemon pod. Tolerations that the restored template still has belong to the author. */
function cleanDaemonPod(
  ours: readonly Toleration[],
  tolerations: readonly JsonObject[],
  restored: RestoredDaemonSet | undefined,
  { architectures }: CleanedCluster,
): PodCleaning {
  // A daemon pod without its DaemonSet is removed by the garbage collector.
  if (restored === undefined) return { kind: 'none' };
  const { tolerations: template, updateStrategy, rolls, wasWhole } = restored;
  if (ours.every((entry) => template.some((own) => isSame(own, entry)))) return { kind: 'none' };
  const keep = (reason: string): PodCleaning => ({ kind: 'keep', reason });
  if (updateStrategy === 'OnDelete') return keep('its DaemonSet replaces pods only when they are deleted');
  const wrong = architectures.filter((name) => !runsOn(tolerations, ours, name));
  if (wrong.length > 0) {
    const nodes = `nodes of ${wrong.join(' or ')}, for which its images have no build`;
    return keep(`its DaemonSet may also start pods on ${nodes}, so clean does not wait until it replaces this pod`);
  }
  if (!wasWhole) {
    return keep('its DaemonSet lacked available pods before, so clean does not wait until it replaces this pod');
  }
  return rolls ? { kind: 'rolls' } : keep('its DaemonSet does not replace it');
}

/** Whether a toleration has archaware's form, under any key. */
function hasOurForm(toleration: JsonObject): boolean {
  const { key, value, effect } = toleration;
  if (typeof key !== 'string' || typeof value !== 'string' || !isArchitectureName(value)) return false;
  const effects = ['NoSchedule', 'PreferNoSchedule'];
  return effects.some((possible) => effect === possible && asOurs(toleration, { key, effect: possible }) !== undefined);
}
