import { ARCHITECTURE_GATE, TOLERATIONS_ANNOTATION } from '../../src/names.ts';
import { at, equal, isObject, type JsonObject, object, objects, text } from '../simulator/json.ts';
import { nameOf, uidOf } from '../simulator/objects/store.ts';
import type { ModelServer } from './api-server.ts';
import { fits } from './program.ts';
import type { Rules } from './rules.ts';
import { IMAGE_NAMES, type NewPod } from './steps.ts';
import { isGated, TAINT_KEY } from './truth.ts';
import type { World } from './world.ts';

/** Everybody else in the cluster: authors, kubelets, the scheduler, the DaemonSet controller. What they ask is done at once. */
export type Actors = {
  addNode(name: string, architecture: string): Promise<void>;
  /** A node joins, or its kubelet reports another architecture. */
  changeNode(index: number, architecture: string): Promise<void>;
  deleteNode(index: number): Promise<void>;
  /** The kubelet of a node reports whether it is ready. */
  report(name: string, isReady: boolean): Promise<void>;
  taintNode(index: number, is: boolean): Promise<void>;
  createPod(index: number, pod: NewPod, isGateable: boolean): Promise<void>;
  deletePod(index: number, isSlow: boolean): Promise<void>;
  /** The kubelet has stopped the first pod that was deleted. */
  endPod(): Promise<void>;
  orphan(index: number): Promise<void>;
  changePodImage(index: number, image: number): Promise<void>;
  createSet(index: number, image: number): Promise<void>;
  deleteSet(index: number): Promise<void>;
  /** The author updates a DaemonSet without archaware's tolerations, as a GitOps tool does. */
  drop(index: number): Promise<void>;
  /** `kubectl rollout restart`: the template is decided again. */
  restart(index: number): Promise<void>;
  /** `kubectl rollout undo`: the template is the one before the last change, no matter who made that. */
  undo(index: number): Promise<void>;
  /** Somebody removes archaware's record. */
  forget(index: number): Promise<void>;
  /** The DaemonSet controller: the status follows the template and the nodes. `isRefused`: no pod with archaware's toleration. */
  roll(index: number, isRefused: boolean): Promise<void>;
  /** Keeps the template of a DaemonSet as a revision. */
  revise(daemonSet: JsonObject): void;
  isTakenBack(index: number): Promise<boolean>;
  labelNamespace(label: string, value: string | null): Promise<void>;
  /** The scheduler: the first pod that fits a node is bound to it, and runs. */
  bind(): Promise<void>;
};

/** The namespace of the pods, and that of the system, where the second DaemonSet is. */
export const NAMESPACE = 'shop';
export const SYSTEM = 'kube-system';
const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
/** The taint of a node that is not ready, which the admission of a new node adds, and one that somebody may add. */
const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
const DEDICATED = { key: 'dedicated', value: 'x', effect: 'NoSchedule' };
const NODES = '/api/v1/nodes';
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;

/** Creates the actors. */
export function createActors({ world, server, rules }: { world: World; server: ModelServer; rules: Rules }): Actors {
  /** The templates that each DaemonSet has had, by uid, without repetitions. The last one is the newest. */
  const revisions = new Map<string, JsonObject[]>();

  async function find(path: string): Promise<JsonObject | undefined> {
    const { status, body } = await server.ask('GET', path);
    return status === 200 ? body : undefined;
  }

  async function patch(path: string, body: unknown, contentType = MERGE_PATCH): Promise<JsonObject | undefined> {
    const answer = await server.ask('PATCH', path, body, contentType);
    return answer.status < 300 ? answer.body : undefined;
  }

  /** Changes an object as its author, so that archaware may decide about it again. */
  async function author(path: string, body: unknown, contentType = MERGE_PATCH): Promise<JsonObject | undefined> {
    const after = await patch(path, body, contentType);
    if (after !== undefined) rules.changed(uidOf(after));
    return after;
  }

  function revise(daemonSet: JsonObject): void {
    const template = object(at(daemonSet, 'spec', 'template'));
    const known = revisions.get(uidOf(daemonSet)) ?? [];
    revisions.set(uidOf(daemonSet), [...known.filter((one) => !equal(one, template)), template]);
  }

  async function addNode(name: string, architecture: string): Promise<void> {
    const metadata = { name, labels: { 'kubernetes.io/arch': architecture } };
    const status = { nodeInfo: { architecture }, conditions: [{ type: 'Ready', status: 'True' }] };
    const spec = { taints: [{ key: 'foreign', effect: 'PreferNoSchedule' }] };
    await server.ask('POST', NODES, { metadata, spec, status });
    await setTaint(name, NOT_READY, false);
  }

  /** Adds a taint to a node, or takes it off. */
  async function setTaint(name: string, taint: JsonObject, is: boolean): Promise<void> {
    const node = await find(`${NODES}/${name}`);
    const taints = objects(at(node, 'spec', 'taints'));
    const others = taints.filter(({ key }) => key !== taint.key);
    if (node === undefined || is === others.length < taints.length) return;
    const value = is ? [taint, ...others] : others;
    await patch(`${NODES}/${name}`, [{ op: 'add', path: '/spec/taints', value }], JSON_PATCH);
  }

  return {
    addNode,
    async changeNode(index, architecture) {
      const found = await find(`${NODES}/n${index}`);
      if (found === undefined) return addNode(`n${index}`, architecture);
      if (at(found, 'status', 'nodeInfo', 'architecture') !== architecture) rules.reported(uidOf(found));
      await patch(`${NODES}/n${index}/status`, { status: { nodeInfo: { architecture } } });
    },
    async deleteNode(index) {
      await server.ask('DELETE', `${NODES}/n${index}`);
    },
    async report(name, isReady) {
      // An image list and a heartbeat, as real kubelets send them.
      const conditions = [
        { lastHeartbeatTime: String(world.now()), type: 'MemoryPressure', status: 'False' },
        { type: 'Ready', status: isReady ? 'True' : 'False' },
      ];
      await patch(`${NODES}/${name}/status`, { status: { conditions } });
      // The node lifecycle controller follows.
      await setTaint(name, NOT_READY, !isReady);
    },
    taintNode: (index, is) => setTaint(`n${index}`, DEDICATED, is),
    async createPod(index, pod, isGateable) {
      const owner = pod.kind === 'daemon' ? await find(setPath(0)) : undefined;
      await server.ask('POST', PODS, podOf(index, pod, isGateable, owner));
    },
    async deletePod(index, isSlow) {
      await server.ask('DELETE', `${PODS}/p${index}`, isSlow ? {} : { gracePeriodSeconds: 0 });
    },
    async endPod() {
      const pod = server.all('v1', 'pods').find((one) => at(one, 'metadata', 'deletionTimestamp') !== undefined);
      if (pod !== undefined) await server.ask('DELETE', `${PODS}/${nameOf(pod)}`, { gracePeriodSeconds: 0 });
    },
    async orphan(index) {
      await author(`${PODS}/p${index}`, { metadata: { ownerReferences: null } });
    },
    async changePodImage(index, image) {
      // managedFields has times in seconds.
      await world.tick(1_000);
      const value = IMAGE_NAMES[image];
      await author(`${PODS}/p${index}`, [{ op: 'replace', path: '/spec/containers/0/image', value }], JSON_PATCH);
    },
    async createSet(index, image) {
      const created = await server.ask('POST', setPath(index, false), setOf(index, image));
      if (created.status !== 409) return;
      const value = IMAGE_NAMES[image];
      const path = '/spec/template/spec/containers/0/image';
      await author(setPath(index), [{ op: 'replace', path, value }], JSON_PATCH);
    },
    async deleteSet(index) {
      await server.ask('DELETE', setPath(index));
    },
    async drop(index) {
      const found = await find(setPath(index));
      if (found === undefined || at(found, 'spec', 'template', 'spec', 'tolerations') === undefined) return;
      rules.undid(uidOf(found));
      await author(setPath(index), [{ op: 'remove', path: '/spec/template/spec/tolerations' }], JSON_PATCH);
    },
    async restart(index) {
      const annotations = { 'kubectl.kubernetes.io/restartedAt': String(world.now()) };
      await author(setPath(index), { spec: { template: { metadata: { annotations } } } });
    },
    async undo(index) {
      const found = await find(setPath(index));
      if (found === undefined) return;
      revise(found);
      const value = revisions.get(uidOf(found))?.at(-2);
      if (value === undefined) return;
      rules.undid(uidOf(found));
      const after = await author(setPath(index), [{ op: 'replace', path: '/spec/template', value }], JSON_PATCH);
      if (after !== undefined) revise(after);
    },
    async forget(index) {
      const after = await author(setPath(index), { metadata: { annotations: { [TOLERATIONS_ANNOTATION]: null } } });
      if (after !== undefined) rules.undid(uidOf(after));
    },
    async roll(index, isRefused) {
      const body = await find(setPath(index));
      if (body === undefined) return;
      const spec = object(at(body, 'spec', 'template', 'spec'));
      const tolerations = objects(spec.tolerations);
      const notReady = { key: 'node.kubernetes.io/not-ready', operator: 'Exists' };
      const daemon = { ...spec, tolerations: [...tolerations, notReady] };
      const count = server.all('v1', 'nodes').filter((node) => fits(daemon, node)).length;
      // The pod of one node was taken down, and no other may take its place.
      const isStuck = isRefused && tolerations.some(({ key }) => key === TAINT_KEY);
      const current = isStuck ? Math.max(0, count - 1) : count;
      await patch(`${setPath(index)}/status`, {
        status: {
          observedGeneration: at(body, 'metadata', 'generation'),
          desiredNumberScheduled: count,
          currentNumberScheduled: current,
          numberMisscheduled: 0,
          updatedNumberScheduled: isStuck ? 0 : count,
          numberAvailable: current,
          numberReady: current,
        },
      });
    },
    revise,
    async isTakenBack(index) {
      const found = await find(setPath(index));
      const record = text(at(found, 'metadata', 'annotations', TOLERATIONS_ANNOTATION));
      return record.includes('"rollout":"back ');
    },
    async labelNamespace(label, value) {
      await patch(`/api/v1/namespaces/${NAMESPACE}`, { metadata: { labels: { [label]: value } } });
    },
    async bind() {
      const nodes = server.all('v1', 'nodes');
      for (const item of server.all('v1', 'pods')) {
        const spec = object(item.spec);
        const gates = objects(spec.schedulingGates);
        if (text(spec.nodeName) !== '' || isGated(item)) continue;
        const path = `${PODS}/${nameOf(item)}`;
        // The other gate's owner removes it. That is a change of the spec, so archaware decides again.
        if (gates.length > 0) await author(path, [{ op: 'remove', path: '/spec/schedulingGates' }], JSON_PATCH);
        const node = nodes.find((one) => fits(spec, one));
        if (node === undefined) continue;
        await server.ask('POST', `${path}/binding`, { target: { kind: 'Node', name: nameOf(node) } });
        await patch(`${path}/status`, { status: { phase: 'Running' } });
        return;
      }
    },
  };
}

function setPath(index: number, isNamed = true): string {
  const namespace = index === 0 ? NAMESPACE : SYSTEM;
  return `/apis/apps/v1/namespaces/${namespace}/daemonsets${isNamed ? `/d${index}` : ''}`;
}

/** `isGateable`: the webhook that gates pods exists. `owner`: the DaemonSet that the pod belongs to. */
function podOf(index: number, pod: NewPod, isGateable: boolean, owner: JsonObject | undefined): JsonObject {
  const containers = pod.images.map((number, position) => ({ name: `c${position}`, image: IMAGE_NAMES[number] }));
  const gates = [{ name: 'other.example.com/gate' }, { name: ARCHITECTURE_GATE }];
  // Daemon pods are never gated.
  const hasGates = pod.isGated && isGateable && !isObject(owner);
  const annotations = {
    'example.com/mine': 'kept',
    ...(pod.kind === 'all' ? { 'archaware.dev/architectures': 'all' } : {}),
  };
  const reference = owner && { apiVersion: 'apps/v1', kind: 'DaemonSet', name: nameOf(owner), uid: uidOf(owner) };
  const ownerReferences = reference && [{ ...reference, controller: true }];
  const tolerations = [{ key: 'foreign', operator: 'Exists' }];
  return {
    metadata: { name: `p${index}`, annotations, ...(ownerReferences ? { ownerReferences } : {}) },
    spec: { containers, tolerations, ...(hasGates ? { schedulingGates: gates } : {}) },
  };
}

function setOf(index: number, number: number): JsonObject {
  const labels = { app: `d${index}` };
  const containers = [{ name: 'app', image: IMAGE_NAMES[number] }];
  return {
    metadata: { name: `d${index}` },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  };
}
