/** A pod controller over stores, an API server and a registry that the test holds in its hands. */
import { createPodController, type PodController } from '../../../src/controllers/pod/controller.ts';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import type { Operation } from '../../../src/kit/json-patch.ts';
import { createStore } from '../../../src/kube/watch/collection.ts';
import type { WriteResult, WriteTarget } from '../../../src/kube/writer.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { type Namespace, readNamespace } from '../../../src/placement/objects/namespace.ts';
import { type Pod, readPod } from '../../../src/placement/objects/pod.ts';
import { keptPod } from '../../../src/placement/objects/too-large.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { known, pending, settings } from '../../placement/objects.ts';
import { jsonPatch } from '../../simulator/objects/patch.ts';
import { createHandClock } from '../hand-clock.ts';
import { outcomeOf } from '../outcome.ts';

export const KEY = 'shop/web';
export const NEVER = new AbortController().signal;
export const GATED = { schedulingGates: [{ name: 'archaware.dev/architecture' }] };

export type PodGiven = {
  readonly image?: string;
  readonly uid?: string;
  readonly spec?: JsonObject;
  readonly metadata?: JsonObject;
  readonly annotations?: JsonObject;
  readonly phase?: string;
};

/** A cluster of amd64 and arm64 with the namespace `shop`, and a registry whose answers the test sets. */
export function arrangePod(given: Partial<Settings> = {}, isPaced = true) {
  const clock = createHandClock();
  const [pods, namespaces] = [createStore<Pod>(), createStore<Namespace>()];
  const world = {
    settings: settings(given),
    answers: { app: known('linux/arm64'), other: known('linux/amd64') } as Record<string, ImageAnswer>,
    /** How the API server answers a write, if it does not carry it out. */
    refusal: undefined as Exclude<WriteResult, { kind: 'written' }> | undefined,
    /** What another webhook makes of the result of a write. */
    webhook: (object: JsonObject): JsonObject => object,
    secrets: [] as { name: string; reason: string }[],
  };
  const asked: string[] = [];
  const recalled: string[] = [];
  const writes: string[] = [];
  const decided: string[] = [];
  const placed: number[] = [];
  const events: string[] = [];
  const turns: string[] = [];
  let version = 1;
  let object: JsonObject = {};
  namespaces.put('shop', readNamespace({ metadata: { name: 'shop' } }));
  const controller: PodController = createPodController({
    pods,
    namespaces,
    settings: () => world.settings,
    clusterArchitectures: () => ['amd64', 'arm64'],
    images: {
      answer({ image }, _namespace, _pullSecrets, mayStart) {
        (mayStart?.() === false ? recalled : asked).push(image);
        return world.answers[image] ?? pending;
      },
      namesOf: (image) => [image],
      canonicalOf: (image) => `canonical/${image}`,
      unusableSecrets: () => world.secrets,
    },
    async write(target: WriteTarget, patch: readonly Operation[]) {
      writes.push(`${target.action} ${target.namespace}/${target.name}`);
      if (world.refusal !== undefined) return world.refusal;
      const patched = world.webhook(jsonPatch(object, JSON.stringify(patch)));
      const isSame = JSON.stringify(patched) === JSON.stringify(object);
      if (!isSame) version += 1;
      const metadata = objectAt(patched, 'metadata');
      const generation = Number(metadata.generation) + (isSame ? 0 : 1);
      object = { ...patched, metadata: { ...metadata, generation, resourceVersion: String(version) } };
      return { kind: 'written', object };
    },
    events: { emit: ({ reason, note }) => events.push(`${reason}: ${note}`) > 0 },
    clock,
    isPaced,
    onTurn: (key) => turns.push(key),
    onDecided: (key) => decided.push(key),
    onPlaced: (seconds) => placed.push(seconds),
  });
  /** Shows the pod in the watch, as its author wrote it. */
  function put({ image = 'app', uid = 'u1', spec = {}, metadata = {}, annotations = {}, phase = '' }: PodGiven = {}) {
    version += 1;
    object = {
      metadata: {
        ...{ namespace: 'shop', name: 'web', uid, generation: version, resourceVersion: String(version) },
        ...{ creationTimestamp: '1970-01-01T00:00:00Z', annotations, ...metadata },
      },
      spec: { containers: [{ image }], ...spec },
      status: { phase },
    };
    pods.put(KEY, keptPod(readPod(object)));
  }
  return {
    ...{ clock, world, pods, namespaces, controller, put },
    ...{ asked, recalled, writes, decided, placed, events, turns },
    /** Shows the result of the last write in the watch. */
    show: () => pods.put(KEY, keptPod(readPod(object))),
    now: () => readPod(object),
    /** Binds the pod, which the watch does not show yet. */
    bind() {
      object = { ...object, spec: { ...objectAt(object, 'spec'), nodeName: 'n1' } };
    },
    run: async () => outcomeOf(await controller.reconcile(KEY, NEVER)),
  };
}

/** Returns the values of the pod's tolerations, and whether it is gated. */
export function shown({ tolerations = [], gated }: Pod): string {
  return `${tolerations.map(({ value }) => value).join()}${gated ? ' gated' : ''}`;
}
