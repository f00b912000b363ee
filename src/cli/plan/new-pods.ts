import { byName } from '../../analysis/workloads/overview.ts';
import { workloadOf } from '../../analysis/workloads/owner.ts';
import type { Decided } from '../../controllers/memory.ts';
import type { Watches } from '../../controllers/watches.ts';
import { type JsonObject, objectAt } from '../../kit/json.ts';
import { DEFAULT_NAMESPACE } from '../../names.ts';
import { isForOneNode } from '../../placement/objects/kinds.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { type Placed, type Requirement, withAffinity } from '../../placement/patch/affinity.ts';
import { placingFor, usesAffinity } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import { readPodSubject } from '../../placement/subject.ts';
import type { Plan } from './plan-shape.ts';

/** How the pods of the cluster select nodes, by their uid; nothing for the many that take any. `false`: the pod is for one node. */
export type Selecting = Map<string, Placed | false>;

/** Notes how a pod selects nodes. The watches do not keep it, and only modes with affinity need it. */
export function readSelecting(selecting: Selecting, object: JsonObject, pod: Pod, settings: Settings): void {
  if (!usesAffinity(settings)) return;
  const spec = objectAt(object, 'spec');
  const { affinity, nodeSelector } = spec;
  if (isForOneNode(pod.owner, spec)) selecting.set(pod.uid, false);
  else if (affinity !== undefined || nodeSelector !== undefined) selecting.set(pod.uid, { affinity, nodeSelector });
}

/**
 * Returns the workloads whose new pods would get another node affinity at admission than their pods have now: that can be written to
 * new pods only. `ownNamespace`: whose pods pass no review.
 */
export function newPodsOf(
  pods: ReadonlyMap<string, Decided>,
  watches: Watches,
  selecting: Selecting,
  ownNamespace = DEFAULT_NAMESPACE,
): Plan['newPods'] {
  const found = new Map<string, Plan['newPods'][number]>();
  for (const [key, { decision, settings }] of pods) {
    const pod = watches.pods.store.get(key);
    const namespace = pod && watches.namespaces.store.get(pod.namespace);
    if (!usesAffinity(settings) || decision.kind !== 'place' || decision.unknown.length > 0) continue;
    // A gated pod gets its affinity now: that is a change.
    if (pod === undefined || namespace === undefined || pod.gated !== undefined) continue;
    const spec = selecting.get(pod.uid) ?? {};
    if (spec === false || [ownNamespace, 'kube-node-lease'].includes(namespace.name)) continue;
    const required = placingFor(decision, readPodSubject(pod, namespace, settings)).affinity?.required ?? [];
    const has = pod.written?.architectures;
    const isOurs = has !== undefined && required.some(({ values }) => isSame(values, has));
    if (isOurs || (has === undefined && withAffinity(spec, { required, preferred: [] }) === undefined)) continue;
    if (required.length === 0) continue;
    const workload = workloadOf(pod);
    found.set(JSON.stringify([workload, required]), { ...workload, requires: required });
  }
  return [...found.values()].sort(byName);
}

function isSame(values: Requirement['values'], others: readonly string[]): boolean {
  return [...values].sort().join() === [...others].sort().join();
}
