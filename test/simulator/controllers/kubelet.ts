import { at, type JsonObject, objects, text } from '../json.ts';
import type { Writer } from '../objects/managed-fields.ts';
import { NODES, PODS } from '../objects/resources.ts';
import { keyOf, nameOf } from '../objects/store.ts';
import {
  addressOf,
  byKey,
  type Controller,
  isDeleting,
  isReady,
  isTerminal,
  ownerOf,
  type World,
} from './controllers.ts';
import { withCondition } from './pod-actions.ts';

const KUBELET: Writer = { user: 'system:node', manager: 'kubelet' };

export interface KubeletOptions {
  /** The architectures that an image is for; undefined: all. A container on another node crashes. */
  readonly imagePlatforms?: (image: string) => readonly string[] | undefined;
  /** Nodes become Ready and bound pods Running; else only terminating pods are ended. */
  readonly enabled: boolean;
}

/** Plays the kubelets of all nodes: pods run, those of Jobs succeed, those on the wrong architecture crash. */
export function createKubelet({ store, api }: World, options: KubeletOptions): Controller {
  function reconcilePod(pod: JsonObject): void {
    if (isDeleting(pod)) {
      const deletion = { gracePeriodSeconds: 0 };
      api.remove(addressOf(PODS, pod), deletion, KUBELET);
      return;
    }
    const node = store.get(NODES, '', text(at(pod, 'spec', 'nodeName')));
    if (!options.enabled || !node || isTerminal(pod)) return;
    if (sameImages(pod)) return;
    const status = run(pod, text(at(node, 'status', 'nodeInfo', 'architecture')));
    api.update(addressOf(PODS, pod, 'status'), (item) => ({ ...item, status }), KUBELET);
  }

  function run(pod: JsonObject, architecture: string): JsonObject {
    const statuses = (items: unknown) =>
      objects(items).map(({ name, image }) => {
        const platforms = options.imagePlatforms?.(text(image));
        const works = platforms === undefined || platforms.includes(architecture);
        return works ? running(text(name), text(image)) : crashing(text(name), text(image));
      });
    const containerStatuses = statuses(at(pod, 'spec', 'containers'));
    const initContainerStatuses = statuses(at(pod, 'spec', 'initContainers'));
    const healthy = [...containerStatuses, ...initContainerStatuses].every(({ ready }) => ready === true);
    const isJob = ownerOf(pod)?.kind === 'Job';
    const phase = !isJob ? 'Running' : healthy ? 'Succeeded' : 'Failed';
    const isRunning = healthy && !isJob;
    const conditions = [
      { type: 'PodScheduled', status: 'True' },
      { type: 'Initialized', status: 'True' },
      { type: 'ContainersReady', status: isRunning ? 'True' : 'False' },
      { type: 'Ready', status: isRunning ? 'True' : 'False' },
    ];
    return {
      qosClass: 'BestEffort',
      phase,
      conditions,
      startTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
      podIP: '10.0.0.1',
      hostIP: '10.0.0.1',
      containerStatuses,
      ...(initContainerStatuses.length > 0 ? { initContainerStatuses } : {}),
    };
  }

  return {
    onEvent({ resource, object, type }, enqueue) {
      if (type === 'DELETED') return;
      if (resource === PODS && (isDeleting(object) || at(object, 'spec', 'nodeName'))) enqueue(keyOf(object));
      if (resource === NODES && !isReady(object)) enqueue(`node/${nameOf(object)}`);
    },
    reconcile(key) {
      const pod = byKey(store, PODS, key);
      if (pod) return reconcilePod(pod);
      const node = key.startsWith('node/') ? store.get(NODES, '', key.slice(5)) : undefined;
      if (!node || !options.enabled || isReady(node)) return;
      const condition = {
        type: 'Ready',
        status: 'True',
        reason: 'KubeletReady',
        message: 'kubelet is posting ready status',
      };
      api.update(addressOf(NODES, node, 'status'), (item) => withCondition(item, condition), KUBELET);
    },
  };
}

/** Whether the running images are those of the spec. */
function sameImages(pod: JsonObject): boolean {
  const images = (items: unknown) =>
    objects(items)
      .map(({ image }) => text(image))
      .join();
  return (
    at(pod, 'status', 'phase') === 'Running' &&
    images(at(pod, 'spec', 'containers')) === images(at(pod, 'status', 'containerStatuses'))
  );
}

function running(name: string, image: string): JsonObject {
  const state = { running: { startedAt: new Date().toISOString().replace(/\.\d+Z$/, 'Z') } };
  return { name, image, imageID: '', ready: true, started: true, restartCount: 0, state };
}

function crashing(name: string, image: string): JsonObject {
  const message = `back-off 10s restarting failed container=${name}`;
  const terminated = { exitCode: 255, reason: 'StartError', message: 'exec format error' };
  const state = { waiting: { reason: 'CrashLoopBackOff', message } };
  return { name, image, imageID: '', ready: false, started: false, restartCount: 3, state, lastState: { terminated } };
}
