import { isOfKubernetes, shownKind } from '../../placement/objects/kinds.ts';
import type { Pod } from '../../placement/objects/pod.ts';

/** The object that a user knows as the source of pods. */
export type WorkloadName = { readonly kind: string; readonly namespace: string; readonly name: string };

/** The label with which the Deployment controller tells the ReplicaSets of a Deployment apart. */
const TEMPLATE_HASH = 'pod-template-hash';

/**
 * Returns the workload of a pod: its owner, or the pod itself if nothing owns it. The Deployment behind a ReplicaSet follows from
 * the names, because ReplicaSets are not read: their name is that of the Deployment with the pods' template hash.
 */
export function workloadOf({
  namespace,
  name,
  owner,
  labels,
}: Pick<Pod, 'namespace' | 'name' | 'owner' | 'labels'>): WorkloadName {
  if (owner === undefined) return { kind: 'Pod', namespace, name };
  const end = `-${labels[TEMPLATE_HASH] ?? ''}`;
  if (
    owner.kind === 'ReplicaSet' &&
    isOfKubernetes(owner) &&
    end !== '-' &&
    owner.name.endsWith(end) &&
    owner.name !== end
  ) {
    return { kind: 'Deployment', namespace, name: owner.name.slice(0, -end.length) };
  }
  return { kind: shownKind(owner), namespace, name: owner.name };
}
