/** A DaemonSet controller over stores, an API server and a registry that the test holds in its hands. */
import { createDaemonSetController } from '../../../src/controllers/daemonset/controller.ts';
import { type JsonObject, numberAt, objectAt } from '../../../src/kit/json.ts';
import { createStore } from '../../../src/kube/watch/collection.ts';
import type { WriteResult } from '../../../src/kube/writer.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import type { Node } from '../../../src/placement/nodes/node.ts';
import { type DaemonSet, readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { type Namespace, readNamespace } from '../../../src/placement/objects/namespace.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { known, pending, settings } from '../../placement/objects.ts';
import { jsonPatch } from '../../simulator/objects/patch.ts';
import { createHandClock } from '../hand-clock.ts';
import { outcomeOf } from '../outcome.ts';

export const KEY = 'shop/agent';
const NEVER = new AbortController().signal;

export type DaemonSetGiven = {
  readonly name?: string;
  readonly uid?: string;
  readonly images?: readonly string[];
  readonly spec?: JsonObject;
  readonly labels?: JsonObject;
  readonly metadata?: JsonObject;
  readonly templateLabels?: JsonObject;
  readonly templateAnnotations?: JsonObject;
  readonly status?: JsonObject;
};

/** A cluster of amd64 and arm64 with the namespace `shop`, and a registry whose answers the test sets. */
export function arrangeDaemonSets(given: Partial<Settings> = {}) {
  const clock = createHandClock();
  const [daemonSets, namespaces] = [createStore<DaemonSet>(), createStore<Namespace>()];
  const world = {
    settings: settings(given),
    answers: { app: known('linux/arm64'), other: known('linux/amd64') } as Record<string, ImageAnswer>,
    /** How the API server answers a write, if it does not carry it out. */
    refusal: undefined as Exclude<WriteResult, { kind: 'written' }> | Error | undefined,
    /** What another writer makes of the result of a write. */
    webhook: (object: JsonObject): JsonObject => object,
    secrets: [] as { name: string; reason: string }[],
    nodes: [] as Node[],
    /** How the API server answers when a DaemonSet is read. */
    read: (name: string): DaemonSet => now(name),
  };
  const asked: string[] = [];
  const writes: string[] = [];
  const decided: string[] = [];
  const events: string[] = [];
  const accounts: string[] = [];
  const served: string[] = [];
  const objects = new Map<string, JsonObject>();
  let version = 1;
  namespaces.put('shop', readNamespace({ metadata: { name: 'shop' } }));
  const controller = createDaemonSetController({
    daemonSets,
    namespaces,
    settings: () => world.settings,
    clusterArchitectures: () => ['amd64', 'arm64'],
    liveTaints: () => new Set(),
    async serviceAccountSecrets(_namespace, name) {
      accounts.push(name);
      return ['of-account'];
    },
    images: {
      answer({ image }, _namespace, secrets) {
        asked.push([image, ...secrets].join(' '));
        return world.answers[image] ?? pending;
      },
      namesOf: (image) => [image],
      canonicalOf: (image) => `canonical/${image}`,
      unusableSecrets: () => world.secrets,
    },
    async write({ kind, action, namespace, name }, patch) {
      writes.push(`${action} ${kind} ${namespace}/${name}`);
      if (world.refusal instanceof Error) throw world.refusal;
      if (world.refusal !== undefined) return world.refusal;
      const before = objects.get(name) ?? {};
      const patched = world.webhook(jsonPatch(before, JSON.stringify(patch)));
      if (JSON.stringify(patched) === JSON.stringify(before)) return { kind: 'written', object: before };
      version += 1;
      const isSpec = JSON.stringify(patched.spec) !== JSON.stringify(before.spec);
      const generation = (numberAt(objectAt(before, 'metadata'), 'generation') ?? 0) + (isSpec ? 1 : 0);
      const changed = { ...objectAt(patched, 'metadata'), generation, resourceVersion: String(version) };
      objects.set(name, { ...patched, metadata: changed });
      return { kind: 'written', object: { ...patched, metadata: changed } };
    },
    events: { emit: ({ reason, note }) => events.push(`${reason}: ${note}`) > 0 },
    clock,
    fetchDaemonSet: async ({ name }) => world.read(name),
    nodes: () => world.nodes,
    isPaced: true,
    onTurn: () => undefined,
    onDecided: (key) => decided.push(key),
    onServed: () => served.push('served'),
  });
  /** Shows the DaemonSet in the watch as its author wrote it, rolled out on one node. */
  function put({
    name = 'agent',
    uid = name,
    images = ['app'],
    spec = {},
    templateLabels = {},
    templateAnnotations,
    status = {},
    ...more
  }: DaemonSetGiven = {}) {
    version += 1;
    const { labels = {}, metadata = {} } = more;
    objects.set(name, {
      metadata: {
        ...{ namespace: 'shop', name, uid, labels, generation: version, resourceVersion: String(version) },
        ...metadata,
      },
      spec: {
        template: {
          metadata: {
            labels: templateLabels,
            ...(templateAnnotations === undefined ? {} : { annotations: templateAnnotations }),
          },
          spec: { containers: images.map((image) => ({ image })), ...spec },
        },
      },
      status: { ...rolledOut(version), ...status },
    });
    daemonSets.put(`shop/${name}`, now(name));
  }
  const now = (name = 'agent') => readDaemonSet(objects.get(name) ?? {});
  function become(name: string, status: JsonObject): void {
    const object = objects.get(name) ?? {};
    objects.set(name, { ...object, status: { ...objectAt(object, 'status'), ...status } });
    daemonSets.put(`shop/${name}`, now(name));
  }
  return {
    ...{ clock, world, daemonSets, namespaces, controller, put, now },
    ...{ asked, writes, decided, events, accounts, served },
    /** Shows the result of the last write in the watch; its rollout is over if `isOver`. */
    show: (name = 'agent', isOver = true) => become(name, isOver ? rolledOut(now(name).generation) : {}),
    /** Shows another status of the DaemonSet in the watch. */
    status: (name: string, changed: JsonObject) =>
      become(name, { observedGeneration: now(name).generation, ...changed }),
    run: async (key = KEY) => outcomeOf(await controller.reconcile(key, NEVER)),
  };
}

function rolledOut(observedGeneration: number): JsonObject {
  return {
    ...{ observedGeneration, desiredNumberScheduled: 1, currentNumberScheduled: 1 },
    ...{ updatedNumberScheduled: 1, numberAvailable: 1 },
  };
}

/** What its author puts who applies it again with what archaware has written to it. */
export function asWritten({ template: { tolerations = [] }, recorded = '' }: DaemonSet) {
  return { spec: { tolerations }, metadata: { annotations: { 'archaware.dev/tolerations': recorded } } };
}

/** The DaemonSet as an earlier process has left it. */
export async function leftBehind(): Promise<DaemonSet> {
  const { put, run, now } = arrangeDaemonSets();
  put();
  await run();
  return now();
}

/** Returns the values of the tolerations of the template. */
export function shown({ template }: DaemonSet): string {
  return (template.tolerations ?? []).map(({ value }) => value).join();
}
