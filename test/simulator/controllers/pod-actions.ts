import { assign, at, type JsonObject, list, object, objects, text } from '../json.ts';
import type { Api } from '../objects/api.ts';
import type { Writer } from '../objects/managed-fields.ts';
import { type Address, BUDGETS, findKind, PODS, type Resource } from '../objects/resources.ts';
import { objectSelector } from '../objects/selectors.ts';
import { ApiError, conflict } from '../objects/status.ts';
import { namespaceOf, type Store, uidOf } from '../objects/store.ts';
import { isDeleting, isReady, isTerminal, phaseOf } from './controllers.ts';

const STATUS_SUCCESS = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
const BINDING: Resource = { ...PODS, plural: 'pods/binding' };

/** A pod's conditions with this one in place of the one of its type. */
export function withCondition(item: JsonObject, condition: JsonObject): JsonObject {
  const others = objects(at(item, 'status', 'conditions')).filter(({ type }) => type !== condition.type);
  return assign(item, ['status', 'conditions'], [...others, condition]);
}

/** POST pods/NAME/binding: what the scheduler does. A gated pod cannot be bound. */
export function bindPod(api: Api, address: Address, node: string, writer: Writer): JsonObject {
  const bind = (pod: JsonObject) => {
    if (list(at(pod, 'spec', 'schedulingGates')).length > 0) {
      throw conflict(BINDING, address.name, `pod ${address.name} has non-empty .spec.schedulingGates`);
    }
    const current = text(at(pod, 'spec', 'nodeName'));
    if (current !== '') {
      throw conflict(BINDING, address.name, `pod ${address.name} is already assigned to node "${current}"`);
    }
    const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: new Date().toISOString() };
    return withCondition(assign(pod, ['spec', 'nodeName'], node), scheduled);
  };
  api.update({ ...address, subresource: 'binding' }, bind, writer);
  return STATUS_SUCCESS;
}

/** POST pods/NAME/eviction: a delete that PodDisruptionBudgets may refuse, unless the pod does not run (yet or any more). */
export function evictPod(store: Store, api: Api, address: Address, eviction: JsonObject, writer: Writer): JsonObject {
  const pod = api.find(address);
  const ignoresBudgets = phaseOf(pod) === 'Pending' || isTerminal(pod) || isDeleting(pod);
  const budgets = store
    .list(BUDGETS, namespaceOf(pod))
    .filter((budget) => objectSelector(at(budget, 'spec', 'selector'))(pod));
  const [budget] = budgets;
  if (budget && !ignoresBudgets) {
    if (budgets.length > 1) {
      const message =
        'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
      throw new ApiError(500, 'InternalError', message);
    }
    refuse(store, budget);
  }
  api.remove(address, object(eviction.deleteOptions), writer);
  return STATUS_SUCCESS;
}

function refuse(store: Store, budget: JsonObject): void {
  const { disruptionsAllowed, desiredHealthy, currentHealthy } = disruptions(store, budget);
  if (disruptionsAllowed > 0) return;
  const name = text(at(budget, 'metadata', 'name'));
  const message = `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  throw new ApiError(429, 'TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
    causes: [{ reason: 'DisruptionBudget', message }],
  });
}

/** What the disruption controller writes into a budget's status. */
export function disruptions(store: Store, budget: JsonObject) {
  const pods = store
    .list(PODS, namespaceOf(budget))
    .filter(objectSelector(at(budget, 'spec', 'selector')))
    .filter((pod) => !isTerminal(pod));
  const currentHealthy = pods.filter((pod) => isReady(pod) && !isDeleting(pod)).length;
  const minimum = at(budget, 'spec', 'minAvailable');
  const maximum = at(budget, 'spec', 'maxUnavailable');
  const expectedPods = typeof minimum === 'number' ? pods.length : expected(store, pods);
  const desiredHealthy =
    maximum === undefined
      ? scaled(minimum ?? 1, expectedPods)
      : Math.max(0, expectedPods - scaled(maximum, expectedPods));
  const disruptionsAllowed = pods.length === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  return { currentHealthy, desiredHealthy, expectedPods, disruptionsAllowed };
}

const scaled = (value: unknown, of: number) =>
  typeof value === 'number' ? value : Math.ceil((Number.parseInt(text(value), 10) / 100) * of);

/** The sum of what the pods' owners want, each counted once. */
function expected(store: Store, pods: readonly JsonObject[]): number {
  const owners = new Map<string, number>();
  for (const pod of pods) {
    const [reference] = objects(at(pod, 'metadata', 'ownerReferences'));
    const kind = reference && findKind(text(reference.apiVersion), text(reference.kind));
    const owner = kind && store.get(kind, namespaceOf(pod), text(reference?.name));
    const replicas = owner ? at(owner, 'spec', 'replicas') : undefined;
    owners.set(owner ? uidOf(owner) : uidOf(pod), typeof replicas === 'number' ? replicas : 1);
  }
  return [...owners.values()].reduce((sum, replicas) => sum + replicas, 0);
}
