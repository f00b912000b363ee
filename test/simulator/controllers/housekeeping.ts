import { assign, at, type JsonObject, objects } from '../json.ts';
import { CONTROLLER_MANAGER } from '../objects/managed-fields.ts';
import { BUDGETS, NODES, PODS, REPLICA_SETS } from '../objects/resources.ts';
import { keyOf, nameOf, namespaceOf, uidOf } from '../objects/store.ts';
import { addressOf, byKey, type Controller, isReady, setStatus, type World } from './controllers.ts';
import { disruptions } from './pod-actions.ts';

const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
const UNSCHEDULABLE = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** The node controller: the taints for a node's conditions, and the deletion of the pods of a deleted node. */
export function createNodeLifecycle({ store, api, pods }: World): Controller {
  return {
    onEvent({ resource, object }, enqueue) {
      if (resource === NODES) enqueue(nameOf(object));
    },
    reconcile(name) {
      const node = store.get(NODES, '', name);
      if (!node) {
        for (const pod of pods.onNode(name))
          api.remove(addressOf(PODS, pod), { gracePeriodSeconds: 0 }, CONTROLLER_MANAGER);
        return;
      }
      const wanted = [
        ...(isReady(node) ? [] : [NOT_READY]),
        ...(at(node, 'spec', 'unschedulable') ? [UNSCHEDULABLE] : []),
      ];
      const taints = objects(at(node, 'spec', 'taints'));
      const isOurs = (taint: JsonObject) =>
        [NOT_READY, UNSCHEDULABLE].some(({ key, effect }) => taint.key === key && taint.effect === effect);
      const current = taints.filter(isOurs).map(({ key }) => key);
      if (wanted.length === current.length && wanted.every(({ key }) => current.includes(key))) return;
      const next = [...taints.filter((taint) => !isOurs(taint)), ...wanted];
      api.update(addressOf(NODES, node), (item) => assign(item, ['spec', 'taints'], next), CONTROLLER_MANAGER);
    },
  };
}

/** The garbage collector: deletes the objects that a deleted object owned. */
export function createGarbageCollector({ store, api, pods }: World): Controller {
  return {
    onEvent({ resource, type, object }, enqueue) {
      if (type === 'DELETED' && resource !== PODS) enqueue(`${namespaceOf(object)}/${uidOf(object)}`);
    },
    reconcile(key) {
      const [namespace = '', uid = ''] = key.split('/');
      for (const pod of pods.ownedBy(uid)) api.remove(addressOf(PODS, pod), {}, CONTROLLER_MANAGER);
      for (const set of store.list(REPLICA_SETS, namespace)) {
        const owned = objects(at(set, 'metadata', 'ownerReferences')).some((owner) => owner.uid === uid);
        if (owned) api.remove(addressOf(REPLICA_SETS, set), {}, CONTROLLER_MANAGER);
      }
    },
  };
}

/** The status of PodDisruptionBudgets. */
export function createDisruption({ store, api }: World): Controller {
  return {
    onEvent({ resource, type, object }, enqueue) {
      if (resource === BUDGETS && type !== 'DELETED') enqueue(keyOf(object));
      if (resource !== PODS) return;
      for (const budget of store.list(BUDGETS, namespaceOf(object))) enqueue(keyOf(budget));
    },
    reconcile(key) {
      const budget = byKey(store, BUDGETS, key);
      if (!budget) return;
      const status = { ...disruptions(store, budget), observedGeneration: at(budget, 'metadata', 'generation') };
      setStatus(api, BUDGETS, budget, status, CONTROLLER_MANAGER);
    },
  };
}
