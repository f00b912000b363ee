import { assign, at, equal, type JsonObject, object, objects, text } from '../json.ts';
import type { Api } from '../objects/api.ts';
import { CONTROLLER_MANAGER, type Writer } from '../objects/managed-fields.ts';
import { type Address, PODS, type Resource } from '../objects/resources.ts';
import { ApiError } from '../objects/status.ts';
import { keyOf, nameOf, namespaceOf, type Store, type StoreEvent, uidOf } from '../objects/store.ts';

/** One of the cluster's own controllers: the keys that it queues after an event, and what it does for a key. */
export interface Controller {
  onEvent(event: StoreEvent, enqueue: (key: string) => void): void;
  /** A promise where pods are made, which may have to wait for admission. */
  reconcile(key: string): void | Promise<void>;
}

/** The parts that controllers use. They act on the store directly, not over HTTP, so the log has none of their requests. */
export interface World {
  readonly store: Store;
  readonly api: Api;
  readonly pods: PodIndex;
}

/** Done in one turn of the event loop at most, so that HTTP gets its own. */
const BATCH = 64;
/** A refused action is retried after this time. */
const RETRY_MS = 100;

/**
 * Runs the controllers shortly after each change, until nothing is left to do. A controller handles each key only
 * once at a time.
 */
export function runControllers(store: Store, controllers: readonly Controller[]) {
  const queues = controllers.map((controller) => ({
    controller,
    keys: new Set<string>(),
    busy: new Set<string>(),
    /** Keys to look at again when they are no longer busy. */
    again: new Set<string>(),
  }));
  type Queue = (typeof queues)[number];
  let scheduled: NodeJS.Immediate | undefined;
  let running = true;

  const schedule = () => {
    if (running && !scheduled && queues.some(({ keys }) => keys.size > 0)) scheduled = setImmediate(work);
  };
  const work = () => {
    scheduled = undefined;
    for (const queue of queues) {
      for (const key of [...queue.keys].slice(0, BATCH)) {
        queue.keys.delete(key);
        void attempt(queue, key);
      }
    }
    schedule();
  };
  const enqueue = ({ keys, busy, again }: Queue, key: string) => {
    (busy.has(key) ? again : keys).add(key);
    schedule();
  };
  const attempt = async (queue: Queue, key: string) => {
    queue.busy.add(key);
    const accepted = await isAccepted(queue.controller, key);
    queue.busy.delete(key);
    if (queue.again.delete(key)) enqueue(queue, key);
    if (!accepted) setTimeout(enqueue, RETRY_MS, queue, key).unref();
  };
  const unsubscribe = store.subscribe((event) => {
    for (const queue of queues) queue.controller.onEvent(event, (key) => enqueue(queue, key));
  });
  return {
    /** Nothing happens in the cluster until `resume`: the API server is away. */
    pause() {
      running = false;
      if (scheduled) clearImmediate(scheduled);
      scheduled = undefined;
    },
    resume() {
      running = true;
      schedule();
    },
    stop() {
      this.pause();
      unsubscribe();
    },
  };
}

/** Whether the API refused nothing: an object that went, a webhook that was away. */
async function isAccepted(controller: Controller, key: string): Promise<boolean> {
  try {
    await controller.reconcile(key);
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return false;
  }
}

export type PodIndex = ReturnType<typeof indexPods>;

/** Pods by their controlling owner and by node, kept up to date. */
export function indexPods(store: Store) {
  const owned = new Map<string, Map<string, JsonObject>>();
  const onNode = new Map<string, Map<string, JsonObject>>();
  const change = (index: typeof owned, group: string, pod: JsonObject, present: boolean) => {
    if (group === '') return;
    const members = index.get(group) ?? new Map<string, JsonObject>();
    index.set(group, members);
    if (present) members.set(keyOf(pod), pod);
    else members.delete(keyOf(pod));
    if (members.size === 0) index.delete(group);
  };
  store.subscribe(({ resource, type, object, previous }) => {
    if (resource !== PODS) return;
    if (previous) change(owned, ownerUid(previous), previous, false);
    change(owned, ownerUid(object), object, type !== 'DELETED');
    change(onNode, text(at(object, 'spec', 'nodeName')), object, type !== 'DELETED');
  });
  return {
    ownedBy: (uid: string): JsonObject[] => [...(owned.get(uid)?.values() ?? [])],
    onNode: (name: string): JsonObject[] => [...(onNode.get(name)?.values() ?? [])],
    countOnNode: (name: string): number => onNode.get(name)?.size ?? 0,
  };
}

export const ownerOf = (item: JsonObject) =>
  objects(at(item, 'metadata', 'ownerReferences')).find(({ controller }) => controller === true);
const ownerUid = (item: JsonObject) => text(ownerOf(item)?.uid);

export const phaseOf = (pod: JsonObject) => text(at(pod, 'status', 'phase'));
export const isDeleting = (item: JsonObject) => at(item, 'metadata', 'deletionTimestamp') !== undefined;
export const isTerminal = (pod: JsonObject) => phaseOf(pod) === 'Succeeded' || phaseOf(pod) === 'Failed';
export const isActive = (pod: JsonObject) => !isDeleting(pod) && !isTerminal(pod);
export const isReady = (item: JsonObject) =>
  objects(at(item, 'status', 'conditions')).some(({ type, status }) => type === 'Ready' && status === 'True');

export function addressOf(resource: Resource, item: JsonObject, subresource = ''): Address {
  return { resource, namespace: namespaceOf(item), name: nameOf(item), subresource };
}

/** The object of a key `namespace/name`. */
export function byKey(store: Store, resource: Resource, key: string): JsonObject | undefined {
  const [namespace = '', name = ''] = key.split('/');
  return store.get(resource, namespace, name);
}

/** Writes the status' fields that differ. */
export function setStatus(api: Api, resource: Resource, item: JsonObject, status: JsonObject, writer: Writer): void {
  const merged = { ...object(item.status), ...status };
  if (equal(merged, item.status)) return;
  api.update(addressOf(resource, item, 'status'), (current) => assign(current, ['status'], merged), writer);
}

/** A pod (or ReplicaSet) of the owner, made from its template. */
export function fromTemplate(owner: JsonObject, name: JsonObject, labels: JsonObject, spec?: JsonObject): JsonObject {
  const template = object(at(owner, 'spec', 'template'));
  const metadata = object(template.metadata);
  const { apiVersion, kind } = owner;
  const own = { apiVersion, kind, name: nameOf(owner), uid: uidOf(owner), controller: true, blockOwnerDeletion: true };
  return {
    metadata: {
      ...name,
      labels: { ...object(metadata.labels), ...labels },
      ...(metadata.annotations ? { annotations: metadata.annotations } : {}),
      ownerReferences: [own],
    },
    spec: spec ?? object(template.spec),
  };
}

/** The controller manager with the account of one controller, as admission sees the pods that it makes. */
export const accountOf = (controller: string): Writer => ({
  ...CONTROLLER_MANAGER,
  user: `system:serviceaccount:kube-system:${controller}-controller`,
});
