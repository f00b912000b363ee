import type { JsonObject } from '../../kit/json.ts';
import { isArchitectureName } from '../../kit/platform.ts';
import { readPodManaged } from '../admission/record.ts';
import { type DaemonSet, decideTemplate, type TemplateDecision } from '../objects/daemonset.ts';
import { type Owner, readPod } from '../objects/pod.ts';
import { wroteTolerations } from '../objects/written.ts';
import { asOurs, isSameToleration, type Toleration } from '../patch/tolerations.ts';

/** The template without anything of ours. */
export function cleanTemplate(daemonSet: Pick<DaemonSet, 'recorded' | 'template'>): TemplateDecision {
  return decideTemplate(daemonSet, [], new Set());
}

/** What `clean` does about a pod that carries our tolerations. */
export type PodCleaning =
  | { readonly kind: 'none' }
  /** Its controller brings it back without them. */
  | { readonly kind: 'replace' }
  /** A DaemonSet rolls it by itself once its template is restored. */
  | { readonly kind: 'rolls' }
  | { readonly kind: 'leave'; readonly reason: string };

const BROUGHT_BACK: ReadonlySet<string> = new Set(['ReplicaSet', 'StatefulSet', 'ReplicationController']);

/**
 * Whether a pod, as the API server sent it, carries tolerations that we wrote, and what can be done about them: they
 * cannot be taken from a pod. `keys`: the taints (`key` and `effect`) of ours that there are or were, for daemon pods. `daemonSetOf`: a DaemonSet
 * as it is after its template was restored, by its uid.
 */
export function cleanPod(
  object: JsonObject,
  keys: readonly { readonly key: string; readonly effect: string }[],
  allPods: boolean,
  daemonSetOf: (uid: string) => DaemonSet | undefined,
): PodCleaning {
  const pod = readPod(object);
  if (pod.deleting || pod.phase === 'Succeeded' || pod.phase === 'Failed') return { kind: 'none' };
  if (pod.owner?.kind === 'DaemonSet') {
    const ours = (pod.tolerations ?? []).flatMap((toleration) => keys.flatMap((key) => asOurs(toleration, key) ?? []));
    return cleanDaemonPod(ours, daemonSetOf(pod.owner.uid), allPods);
  }
  if (!carriesOurs(object, pod.tolerations ?? [])) return { kind: 'none' };
  const reason = allPods ? undefined : whyNotBroughtBack(pod.owner);
  return reason === undefined ? { kind: 'replace' } : { kind: 'leave', reason };
}

/** Why a pod that is evicted may not come back, or undefined where its controller makes another. Not for daemon pods. */
export function whyNotBroughtBack(owner: Owner | undefined): string | undefined {
  if (owner === undefined) return 'bare pod: nothing would bring it back';
  if (BROUGHT_BACK.has(owner.kind)) return undefined;
  if (owner.kind === 'Job') return 'its Job would count it as failed';
  return `owned by a ${owner.kind}, which may not bring it back`;
}

/** Whether a pod has tolerations that its loop wrote, or admission. */
function carriesOurs(object: JsonObject, tolerations: readonly JsonObject[]): boolean {
  // Under whatever key: nothing else remembers one that the configuration no longer has.
  if (tolerations.some(hasOurForm) && wroteTolerations(object)) return true;
  // Also where the record is not signed, as an earlier version wrote it: what is decided by it is that this pod is replaced.
  const admitted = (readPodManaged(object)?.tolerations ?? []).filter(hasOurForm);
  return tolerations.some((toleration) => admitted.some((ours) => isSameToleration(toleration, ours)));
}

/** What of our tolerations its restored template still holds is its author's own. */
function cleanDaemonPod(ours: readonly Toleration[], daemonSet: DaemonSet | undefined, allPods: boolean): PodCleaning {
  // Without its DaemonSet it is collected as garbage.
  if (daemonSet === undefined) return { kind: 'none' };
  const template = daemonSet.template.tolerations ?? [];
  if (ours.every((entry) => template.some((own) => isSameToleration(own, entry)))) return { kind: 'none' };
  if (daemonSet.settled) return { kind: 'replace' };
  if (daemonSet.updateStrategy !== 'OnDelete') return { kind: 'rolls' };
  return allPods
    ? { kind: 'replace' }
    : { kind: 'leave', reason: 'its DaemonSet replaces pods only when they are deleted' };
}

/** Whether we could have written a toleration, under any key. */
function hasOurForm(toleration: JsonObject): boolean {
  const { key, value, effect } = toleration;
  if (typeof key !== 'string' || typeof value !== 'string' || !isArchitectureName(value)) return false;
  const effects = ['NoSchedule', 'PreferNoSchedule'];
  return effects.some((possible) => effect === possible && asOurs(toleration, { key, effect: possible }) !== undefined);
}
