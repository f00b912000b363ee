import { assign, at, type JsonObject, object, objects, text } from '../json.ts';
import { CONTROLLER_MANAGER } from '../objects/managed-fields.ts';
import { DAEMON_SETS, NODES, PODS } from '../objects/resources.ts';
import { keyOf, nameOf, namespaceOf, uidOf } from '../objects/store.ts';
import {
  accountOf,
  addressOf,
  byKey,
  type Controller,
  fromTemplate,
  isDeleting,
  isReady,
  isTerminal,
  setStatus,
  type World,
} from './controllers.ts';
import { fitsAffinity, untolerated } from './taints.ts';
import { hashOf, ownerController } from './workloads.ts';

const EVERYWHERE = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
];

/**
 * DaemonSets, with the real controller's order of things (pkg/controller/daemon): the template is held against each
 * node's taints before a pod is made; a pod that runs stays under a NoSchedule taint; a rolling update takes
 * `maxUnavailable` old pods away at each look, and a node that gets no new one is no longer counted.
 */
export function createDaemonSets({ store, api, pods }: World): Controller {
  const { onEvent, reconcile } = ownerController(DAEMON_SETS, async (key) => {
    const set = byKey(store, DAEMON_SETS, key);
    if (!set || isDeleting(set)) return;
    await manage(set);
    roll(set);
    report(set);
  });

  const byNode = (set: JsonObject) => {
    const nodes = new Map<string, JsonObject[]>();
    for (const pod of pods.ownedBy(uidOf(set))) {
      const name = targetNode(pod);
      nodes.set(name, [...(nodes.get(name) ?? []), pod]);
    }
    return nodes;
  };
  const remove = (pod: JsonObject) => {
    if (!isDeleting(pod)) api.remove(addressOf(PODS, pod), {}, CONTROLLER_MANAGER);
  };

  /** A pod where one should be and none is; none where it may not stay. */
  async function manage(set: JsonObject): Promise<void> {
    const present = byNode(set);
    const [spec, hash] = [podSpec(set), revisionOf(set)];
    for (const node of store.list(NODES)) {
      const here = present.get(nameOf(node)) ?? [];
      present.delete(nameOf(node));
      const { shouldRun, mayStay } = placement(spec, node);
      if (!mayStay) for (const pod of here) remove(pod);
      for (const pod of here) if (isTerminal(pod)) remove(pod);
      if (!shouldRun || here.length > 0) continue;
      const name = { generateName: `${nameOf(set)}-` };
      const labels = {
        'controller-revision-hash': hash,
        'pod-template-generation': String(at(set, 'metadata', 'generation')),
      };
      const pod = fromTemplate(set, name, labels, pinned(spec, nameOf(node)));
      await api.create(PODS, namespaceOf(set), pod, accountOf('daemon-set'));
    }
    for (const orphan of [...present.values()].flat()) remove(orphan);
  }

  function roll(set: JsonObject): void {
    if (at(set, 'spec', 'updateStrategy', 'type') !== 'RollingUpdate') return;
    const [spec, hash] = [podSpec(set), revisionOf(set)];
    const present = byNode(set);
    const desired = store.list(NODES).filter((node) => placement(spec, node).shouldRun);
    const limit = maxUnavailable(set, desired.length);
    const candidates: JsonObject[] = [];
    // A pod may have gone since `manage` looked; another one comes at the next look.
    let unavailable = desired.filter((node) => !present.has(nameOf(node))).length;
    for (const here of present.values()) {
      const [pod, second] = here.filter((other) => !isDeleting(other));
      if (!pod || second) unavailable += 1;
      else if (at(pod, 'metadata', 'labels', 'controller-revision-hash') === hash) unavailable += isReady(pod) ? 0 : 1;
      else if (!isReady(pod)) remove(pod);
      else candidates.push(pod);
    }
    for (const pod of candidates.slice(0, Math.max(0, limit - unavailable))) remove(pod);
  }

  function report(set: JsonObject): void {
    const present = byNode(set);
    const [spec, hash] = [podSpec(set), revisionOf(set)];
    const nodes = store.list(NODES).map((node) => {
      const pod = (present.get(nameOf(node)) ?? []).find((other) => !isDeleting(other));
      return { shouldRun: placement(spec, node).shouldRun, pod };
    });
    const wanted = nodes.filter(({ shouldRun }) => shouldRun);
    const running = wanted.flatMap(({ pod }) => (pod ? [pod] : []));
    const ready = running.filter(isReady).length;
    const updated = running.filter((pod) => at(pod, 'metadata', 'labels', 'controller-revision-hash') === hash).length;
    const unavailable = wanted.length - ready;
    const status = {
      currentNumberScheduled: running.length,
      desiredNumberScheduled: wanted.length,
      numberMisscheduled: nodes.filter(({ shouldRun, pod }) => !shouldRun && pod).length,
      numberReady: ready,
      updatedNumberScheduled: updated === 0 ? undefined : updated,
      numberAvailable: ready === 0 ? undefined : ready,
      numberUnavailable: unavailable === 0 ? undefined : unavailable,
      observedGeneration: at(set, 'metadata', 'generation'),
    };
    setStatus(api, DAEMON_SETS, set, status, CONTROLLER_MANAGER);
  }

  /** A taint that changes nothing but what would be is not looked at: the status stays as it is. */
  function concerns(node: JsonObject, set: JsonObject): boolean {
    const { shouldRun, mayStay } = placement(podSpec(set), node);
    const here = byNode(set).has(nameOf(node));
    return here ? !mayStay : shouldRun;
  }

  return {
    onEvent(event, enqueue) {
      onEvent(event, enqueue);
      if (event.resource !== NODES || event.type === 'DELETED') return;
      for (const set of store.list(DAEMON_SETS)) if (concerns(event.object, set)) enqueue(keyOf(set));
    },
    reconcile,
  };
}

const revisionOf = (set: JsonObject) => hashOf(at(set, 'spec', 'template'));

function podSpec(set: JsonObject): JsonObject {
  const spec = object(at(set, 'spec', 'template', 'spec'));
  return { ...spec, tolerations: [...objects(spec.tolerations), ...EVERYWHERE] };
}

function placement(spec: JsonObject, node: JsonObject): { shouldRun: boolean; mayStay: boolean } {
  const fits = fitsAffinity(spec, node);
  const mayStay = fits && untolerated(spec, node, ['NoExecute']).length === 0;
  return { shouldRun: mayStay && untolerated(spec, node, ['NoSchedule']).length === 0, mayStay };
}

/** The spec bound to a node by its name: the scheduler does the rest. */
function pinned(spec: JsonObject, node: string): JsonObject {
  const path = ['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'];
  const terms = objects(at(spec, ...path));
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [node] }];
  const own = terms.length === 0 ? [{ matchFields }] : terms.map((term) => ({ ...term, matchFields }));
  return assign(spec, path, own);
}

function targetNode(pod: JsonObject): string {
  const path = ['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'];
  const [term] = objects(at(pod, 'spec', ...path));
  const [field] = objects(term?.matchFields);
  const values = field?.values;
  return text(at(pod, 'spec', 'nodeName')) || text(Array.isArray(values) ? values[0] : '');
}

function maxUnavailable(set: JsonObject, desired: number): number {
  const value = at(set, 'spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable') ?? 1;
  if (typeof value === 'number') return Math.max(1, value);
  return Math.max(1, Math.ceil((Number.parseInt(text(value), 10) / 100) * desired));
}
