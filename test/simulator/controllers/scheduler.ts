import { at, type JsonObject, list, object, objects, text } from '../json.ts';
import type { Writer } from '../objects/managed-fields.ts';
import { NODES, PODS } from '../objects/resources.ts';
import { keyOf, nameOf } from '../objects/store.ts';
import { addressOf, byKey, type Controller, isActive, type World } from './controllers.ts';
import { bindPod, withCondition } from './pod-actions.ts';
import { fitsAffinity, matchesTerm, untolerated } from './taints.ts';

const SCHEDULER: Writer = { user: 'system:kube-scheduler', manager: 'kube-scheduler' };

const isWaiting = (pod: JsonObject) =>
  isActive(pod) &&
  at(pod, 'spec', 'nodeName') === undefined &&
  at(pod, 'spec', 'schedulerName') === 'default-scheduler' &&
  list(at(pod, 'spec', 'schedulingGates')).length === 0;

/** The scheduler. It knows taints, node selectors and node affinity, but not the resources of nodes. */
export function createScheduler({ store, api, pods }: World): Controller {
  const waiting = new Set<string>();

  function choose(pod: JsonObject): { node?: string; message: string } {
    const reasons = new Map<string, number>();
    let best: { name: string; score: number } | undefined;
    const nodes = store.list(NODES);
    for (const node of nodes) {
      const obstacle = obstacleTo(pod, node);
      if (obstacle !== undefined) {
        reasons.set(obstacle, (reasons.get(obstacle) ?? 0) + 1);
        continue;
      }
      const score = scoreOf(pod, node) - pods.countOnNode(nameOf(node)) / 1e6;
      if (!best || score > best.score) best = { name: nameOf(node), score };
    }
    if (best) return { node: best.name, message: '' };
    const why = [...reasons].map(([reason, count]) => `${count} ${reason}`).join(', ');
    const message =
      nodes.length === 0 ? 'no nodes available to schedule pods' : `0/${nodes.length} nodes are available: ${why}.`;
    return { message };
  }

  return {
    onEvent({ resource, type, object: item }, enqueue) {
      if (resource === NODES && type !== 'DELETED') for (const key of waiting) enqueue(key);
      if (resource !== PODS) return;
      const key = keyOf(item);
      if (type === 'DELETED' || !isWaiting(item)) waiting.delete(key);
      else {
        waiting.add(key);
        enqueue(key);
      }
    },
    reconcile(key) {
      const pod = byKey(store, PODS, key);
      if (!pod || !isWaiting(pod)) return;
      const { node, message } = choose(pod);
      if (node !== undefined) {
        bindPod(api, addressOf(PODS, pod), node, SCHEDULER);
        return;
      }
      const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message };
      const current = objects(at(pod, 'status', 'conditions')).find(({ type }) => type === 'PodScheduled');
      if (current?.message === message) return;
      api.update(addressOf(PODS, pod, 'status'), (item) => withCondition(item, condition), SCHEDULER);
    },
  };
}

function obstacleTo(pod: JsonObject, node: JsonObject): string | undefined {
  const [taint] = untolerated(pod.spec, node, ['NoSchedule', 'NoExecute']);
  if (taint) return `node(s) had untolerated taint {${text(taint.key)}: ${text(taint.value)}}`;
  return fitsAffinity(pod.spec, node) ? undefined : "node(s) didn't match Pod's node affinity/selector";
}

/** PreferNoSchedule taints count against a node, matching preferences for it. */
function scoreOf(pod: JsonObject, node: JsonObject): number {
  const preferences = at(pod, 'spec', 'affinity', 'nodeAffinity', 'preferredDuringSchedulingIgnoredDuringExecution');
  const weights = objects(preferences).map(({ weight, preference }) =>
    matchesTerm(object(preference), node) ? Number(weight) : 0,
  );
  const avoided = untolerated(pod.spec, node, ['PreferNoSchedule']).length;
  return weights.reduce((sum, weight) => sum + weight, 0) - avoided * 100;
}
