import { createHash } from 'node:crypto';
import { assign, at, type JsonObject, object, objects, text } from '../json.ts';
import { CONTROLLER_MANAGER } from '../objects/managed-fields.ts';
import { findKind, PODS, REPLICA_SETS, type Resource, resourceOf } from '../objects/resources.ts';
import { keyOf, nameOf, namespaceOf, uidOf } from '../objects/store.ts';
import {
  accountOf,
  addressOf,
  byKey,
  type Controller,
  fromTemplate,
  isActive,
  isReady,
  ownerOf,
  phaseOf,
  setStatus,
  type World,
} from './controllers.ts';

/** The name of a template's revision. */
export function hashOf(template: unknown): string {
  return createHash('sha1').update(JSON.stringify(template)).digest('hex').slice(0, 10);
}

/** Looks at an object again when it or one that it owns changes. */
export function ownerController(resource: Resource, reconcile: Controller['reconcile']): Controller {
  return {
    onEvent(event, enqueue) {
      if (event.resource === resource && event.type !== 'DELETED') enqueue(keyOf(event.object));
      const owner = ownerOf(event.object);
      if (owner && findKind(text(owner.apiVersion), text(owner.kind)) === resource) {
        enqueue(`${namespaceOf(event.object)}/${text(owner.name)}`);
      }
    },
    reconcile,
  };
}

/** ReplicaSets: as many pods as they say. */
export function createReplicas({ store, api, pods }: World): Controller {
  return ownerController(REPLICA_SETS, async (key) => {
    const owner = byKey(store, REPLICA_SETS, key);
    if (!owner) return;
    const wanted = Number(at(owner, 'spec', 'replicas'));
    const active = pods.ownedBy(uidOf(owner)).filter(isActive);
    for (let missing = wanted - active.length; missing > 0; missing -= 1) {
      const name = { generateName: `${nameOf(owner)}-` };
      await api.create(PODS, namespaceOf(owner), fromTemplate(owner, name, {}), accountOf('replicaset'));
    }
    const surplus = active
      .sort((a, b) => Number(isReady(a)) - Number(isReady(b)))
      .slice(0, Math.max(0, active.length - wanted));
    for (const pod of surplus) api.remove(addressOf(PODS, pod), {}, CONTROLLER_MANAGER);
    const current = pods.ownedBy(uidOf(owner)).filter(isActive);
    const readyReplicas = current.filter(isReady).length;
    const status = {
      replicas: current.length,
      fullyLabeledReplicas: current.length,
      readyReplicas,
      availableReplicas: readyReplicas,
      observedGeneration: at(owner, 'metadata', 'generation'),
    };
    setStatus(api, REPLICA_SETS, owner, status, CONTROLLER_MANAGER);
  });
}

/** Deployments: the ReplicaSet of the present template grows first, the others go when it is available. */
export function createDeployments({ store, api }: World): Controller {
  const resource = resourceOf('apps/v1', 'deployments');
  return ownerController(resource, async (key) => {
    const deployment = byKey(store, resource, key);
    if (!deployment) return;
    const namespace = namespaceOf(deployment);
    const replicas = Number(at(deployment, 'spec', 'replicas'));
    const hash = hashOf(at(deployment, 'spec', 'template'));
    const owned = store.list(REPLICA_SETS, namespace).filter((set) => ownerOf(set)?.uid === uidOf(deployment));
    const current = owned.find((set) => nameOf(set) === `${nameOf(deployment)}-${hash}`);
    if (!current) {
      await api.create(REPLICA_SETS, namespace, replicaSet(deployment, hash), accountOf('deployment'));
      return;
    }
    const scale = (set: JsonObject, to: number) => {
      if (at(set, 'spec', 'replicas') === to) return;
      api.update(addressOf(REPLICA_SETS, set), (item) => assign(item, ['spec', 'replicas'], to), CONTROLLER_MANAGER);
    };
    scale(current, replicas);
    const available = Number(at(current, 'status', 'availableReplicas') ?? 0);
    if (available >= replicas) for (const set of owned) if (set !== current) scale(set, 0);
    const sum = (field: string) => owned.reduce((total, set) => total + Number(at(set, 'status', field) ?? 0), 0);
    const status = {
      replicas: sum('replicas'),
      updatedReplicas: Number(at(current, 'status', 'replicas') ?? 0),
      readyReplicas: sum('readyReplicas'),
      availableReplicas: sum('availableReplicas'),
      observedGeneration: at(deployment, 'metadata', 'generation'),
    };
    setStatus(api, resource, deployment, status, CONTROLLER_MANAGER);
  });
}

function replicaSet(deployment: JsonObject, hash: string): JsonObject {
  const label = { 'pod-template-hash': hash };
  const template = object(at(deployment, 'spec', 'template'));
  const labelled = assign(template, ['metadata', 'labels'], {
    ...object(at(template, 'metadata', 'labels')),
    ...label,
  });
  const selector = object(at(deployment, 'spec', 'selector'));
  return fromTemplate(deployment, { name: `${nameOf(deployment)}-${hash}` }, label, {
    replicas: at(deployment, 'spec', 'replicas'),
    selector: { ...selector, matchLabels: { ...object(selector.matchLabels), ...label } },
    template: labelled,
  });
}

/** StatefulSets, in order: the next pod when the one before is ready; an old pod goes when all are ready. */
export function createStatefulSets({ store, api, pods }: World): Controller {
  const resource = resourceOf('apps/v1', 'statefulsets');
  return ownerController(resource, async (key) => {
    const set = byKey(store, resource, key);
    if (!set) return;
    const wanted = Number(at(set, 'spec', 'replicas'));
    const revision = `${nameOf(set)}-${hashOf(at(set, 'spec', 'template'))}`;
    const owned = new Map(pods.ownedBy(uidOf(set)).map((pod) => [nameOf(pod), pod]));
    const inOrder = at(set, 'spec', 'podManagementPolicy') !== 'Parallel';
    let settled = true;
    for (let index = 0; index < wanted && (settled || !inOrder); index += 1) {
      const name = `${nameOf(set)}-${index}`;
      const pod = owned.get(name);
      settled = settled && pod !== undefined && isActive(pod) && isReady(pod);
      if (pod) continue;
      const labels = {
        'apps.kubernetes.io/pod-index': String(index),
        'controller-revision-hash': revision,
        'statefulset.kubernetes.io/pod-name': name,
      };
      const names = { name, generateName: `${nameOf(set)}-` };
      await api.create(PODS, namespaceOf(set), fromTemplate(set, names, labels), accountOf('statefulset'));
    }
    const highestFirst = [...owned.values()].filter(isActive).sort((a, b) => ordinal(b) - ordinal(a));
    const surplus = highestFirst.find((pod) => ordinal(pod) >= wanted);
    const outdated = settled ? highestFirst.find((pod) => revisionOf(pod) !== revision) : undefined;
    const goes = surplus ?? outdated;
    if (goes) api.remove(addressOf(PODS, goes), {}, CONTROLLER_MANAGER);
    const current = pods.ownedBy(uidOf(set)).filter(isActive);
    const ready = current.filter(isReady).length;
    const status = {
      replicas: current.length,
      readyReplicas: ready,
      availableReplicas: ready,
      currentReplicas: current.length,
      updatedReplicas: current.filter((pod) => revisionOf(pod) === revision).length,
      updateRevision: revision,
      observedGeneration: at(set, 'metadata', 'generation'),
    };
    setStatus(api, resource, set, status, CONTROLLER_MANAGER);
  });
}

const ordinal = (pod: JsonObject) => Number(nameOf(pod).slice(nameOf(pod).lastIndexOf('-') + 1));
const revisionOf = (pod: JsonObject) => at(pod, 'metadata', 'labels', 'controller-revision-hash');

/** Jobs: a pod that goes before it succeeded counts as failed, and beyond `backoffLimit` the Job has failed. */
export function createJobs({ store, api, pods }: World): Controller {
  const resource = resourceOf('batch/v1', 'jobs');
  const created = new Map<string, Map<string, 'open' | 'succeeded' | 'failed'>>();
  return ownerController(resource, async (key) => {
    const job = byKey(store, resource, key);
    if (!job || objects(at(job, 'status', 'conditions')).length > 0 || at(job, 'spec', 'suspend') === true) return;
    const known = created.get(uidOf(job)) ?? new Map<string, 'open' | 'succeeded' | 'failed'>();
    created.set(uidOf(job), known);
    const present = pods.ownedBy(uidOf(job));
    for (const pod of present) known.set(uidOf(pod), outcomeOf(pod));
    for (const [uid, outcome] of known) {
      if (outcome === 'open' && !present.some((pod) => uidOf(pod) === uid)) known.set(uid, 'failed');
    }
    const count = (outcome: string) => [...known.values()].filter((other) => other === outcome).length;
    const [succeeded, failed, active] = [count('succeeded'), count('failed'), count('open')];
    const { completions, parallelism, backoffLimit } = object(job.spec);
    const condition =
      succeeded >= Number(completions) ? 'Complete' : failed > Number(backoffLimit) ? 'Failed' : undefined;
    if (condition === undefined) {
      const missing = Math.min(Number(parallelism), Number(completions) - succeeded) - active;
      for (let index = 0; index < missing; index += 1) {
        const name = { generateName: `${nameOf(job)}-` };
        const pod = await api.create(PODS, namespaceOf(job), fromTemplate(job, name, {}), accountOf('job'));
        known.set(uidOf(pod), 'open');
      }
    }
    const conditions = condition ? { conditions: [{ type: condition, status: 'True' }] } : {};
    setStatus(api, resource, job, { active: count('open'), succeeded, failed, ...conditions }, CONTROLLER_MANAGER);
  });
}

function outcomeOf(pod: JsonObject): 'open' | 'succeeded' | 'failed' {
  if (phaseOf(pod) === 'Succeeded') return 'succeeded';
  return phaseOf(pod) === 'Failed' ? 'failed' : 'open';
}
