import type { JsonObject } from '../../kit/json.ts';
import { isArchitectureName } from '../../kit/platform.ts';
import { readPodManaged } from '../admission/record.ts';
import { type DaemonSet, decideTemplate, type TemplateDecision } from '../objects/daemonset.ts';
import { type Owner, type Pod, readPod } from '../objects/pod.ts';
import { wroteTolerations } from '../objects/written.ts';
import { asOurs, isSameToleration, type Toleration } from '../patch/tolerations.ts';

/** Decides a template without archaware's tolerations. */
export function cleanTemplate(daemonSet: Pick<DaemonSet, 'recorded' | 'template'>): TemplateDecision {
  return decideTemplate(daemonSet, [], new Set());
}

/** What `clean` does about a pod that has archaware's tolerations. */
export type PodCleaning =
  | { readonly kind: 'none' }
  /** The pod is evicted; its owner creates a new one without the tolerations. */
  | { readonly kind: 'replace' }
  /** The DaemonSet replaces the pod by itself once its template is restored. */
  | { readonly kind: 'rolls' }
  | { readonly kind: 'leave'; readonly reason: string };

const BROUGHT_BACK: ReadonlySet<string> = new Set(['ReplicaSet', 'StatefulSet', 'ReplicationController']);

/**
 * Decides what `clean` does about a pod. Nobody can remove tolerations from a pod, so a pod that has archaware's must be
 * replaced. `keys`: the present and earlier taints of archaware (`key` and `effect`), for daemon pods. `daemonSetOf`: returns a
 * DaemonSet by its uid, as it is after its template was restored. `pod`: what `readPod` made of the object.
 */
export function cleanPod(
  object: JsonObject,
  keys: readonly { readonly key: string; readonly effect: string }[],
  allPods: boolean,
  daemonSetOf: (uid: string) => DaemonSet | undefined,
  pod: Pod = readPod(object),
): PodCleaning {
  if (pod.deleting || pod.phase === 'Succeeded' || pod.phase === 'Failed') return { kind: 'none' };
  if (pod.owner?.kind === 'DaemonSet') {
    const ours = (pod.tolerations ?? []).flatMap((toleration) => keys.flatMap((key) => asOurs(toleration, key) ?? []));
    return cleanDaemonPod(ours, daemonSetOf(pod.owner.uid), allPods);
  }
  if (!carriesOurs(object, pod.tolerations ?? [])) return { kind: 'none' };
  const reason = allPods ? undefined : whyNotBroughtBack(pod.owner);
  return reason === undefined ? { kind: 'replace' } : { kind: 'leave', reason };
}

/** Returns why an evicted pod may not come back; undefined if its owner creates another one. Not for daemon pods. */
export function whyNotBroughtBack(owner: Owner | undefined): string | undefined {
  if (owner === undefined) return 'bare pod: nothing would bring it back';
  if (BROUGHT_BACK.has(owner.kind)) return undefined;
  if (owner.kind === 'Job') return 'its Job would count it as failed';
  return `owned by a ${owner.kind}, which may not bring it back`;
}

/** Whether a pod has tolerations that the controller or admission wrote. */
function carriesOurs(object: JsonObject, tolerations: readonly JsonObject[]): boolean {
  // Any taint key counts: only the pod itself remembers a key that is no longer in the configuration.
  if (tolerations.some(hasOurForm) && wroteTolerations(object)) return true;
  // An unsigned record counts too, because earlier versions did not sign. A forged one only gets the author's own pod replaced.
  const admitted = (readPodManaged(object)?.tolerations ?? []).filter(hasOurForm);
  return tolerations.some((toleration) => admitted.some((ours) => isSameToleration(toleration, ours)));
}

/** Decides about a daemon pod. Tolerations that the restored template still has belong to the author. */
function cleanDaemonPod(ours: readonly Toleration[], daemonSet: DaemonSet | undefined, allPods: boolean): PodCleaning {
  // A daemon pod without its DaemonSet is removed by the garbage collector.
  if (daemonSet === undefined) return { kind: 'none' };
  const template = daemonSet.template.tolerations ?? [];
  if (ours.every((entry) => template.some((own) => isSameToleration(own, entry)))) return { kind: 'none' };
  if (daemonSet.rolledOut) return { kind: 'replace' };
  if (daemonSet.updateStrategy !== 'OnDelete') return { kind: 'rolls' };
  return allPods
    ? { kind: 'replace' }
    : { kind: 'leave', reason: 'its DaemonSet replaces pods only when they are deleted' };
}

/** Whether a toleration has archaware's form, under any key. */
function hasOurForm(toleration: JsonObject): boolean {
  const { key, value, effect } = toleration;
  if (typeof key !== 'string' || typeof value !== 'string' || !isArchitectureName(value)) return false;
  const effects = ['NoSchedule', 'PreferNoSchedule'];
  return effects.some((possible) => effect === possible && asOurs(toleration, { key, effect: possible }) !== undefined);
}
