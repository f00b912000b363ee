import { strangersText } from '../../kit/cut.ts';
import { type JsonObject, listAt, numberAt, objectAt, stringAt } from '../../kit/json.ts';
import { type Demands, readDemands } from '../../placement/fit.ts';
import { type DaemonSet, readDaemonSet } from '../../placement/objects/daemonset.ts';
import {
  isDaemonSetOfAnyGroup,
  isForOneNode,
  isOfKubernetes,
  shownKind,
  templateIn,
  WORKLOAD_KINDS,
} from '../../placement/objects/kinds.ts';
import { type Pod, type PodTemplate, readPod, readTemplate } from '../../placement/objects/pod.ts';
import { writersOf } from '../../placement/objects/pod-record.ts';
import type { Settings } from '../../placement/settings.ts';
import {
  readDaemonSetSubject,
  readPodSubject,
  readTemplateSubject,
  type Subject,
  type SubjectNamespace,
} from '../../placement/subject.ts';

/** A pod, or an object that creates pods, as `explain` reads it. */
export type Workload = {
  /** With the API group, if that is not Kubernetes' own: `DaemonSet.apps.kruise.io`. */
  readonly kind: string;
  /** Empty if the object has none. */
  readonly namespace: string;
  readonly name: string;
  /** A pod is its own template. */
  readonly template: PodTemplate;
  /** Undefined for other kinds. */
  readonly pod: Pod | undefined;
  readonly daemonSet: DaemonSet | undefined;
  readonly demands: Demands;
  /** Whether the author, not the scheduler, set `spec.nodeName`: a new pod would go to the same node again. */
  readonly namesNode: boolean;
  readonly spec: JsonObject;
  /** Names of the scheduling gates. */
  readonly gates: readonly string[];
  /** The hard topology spread constraints of its pods that count nodes whatever their taints; empty for pods of a DaemonSet. */
  readonly spread: readonly HardSpread[];
  /** How many pods it wants at the moment; undefined for a Job that has finished. */
  readonly replicas: number | undefined;
  /** The scheduler's last message about a pod that it could not place. */
  readonly scheduler: string | undefined;
};

/** Reads a pod or an object that creates pods; undefined for an object of another kind. */
export function readWorkload(object: JsonObject): Workload | undefined {
  const kind = stringAt(object, 'kind') ?? '';
  if (!WORKLOAD_KINDS.includes(kind)) return undefined;
  const typed = { kind, apiVersion: stringAt(object, 'apiVersion') ?? '' };
  const isOwn = isOfKubernetes(typed);
  const metadata = objectAt(object, 'metadata');
  const holder = templateIn(kind, object);
  const spec = objectAt(holder, 'spec');
  // A kind of another API group may have its pods' template elsewhere.
  if (!isOwn && listAt(spec, 'containers') === undefined) return undefined;
  const demands = readDemands(spec);
  const pod = kind === 'Pod' ? readPod(object) : undefined;
  const daemonSet = kind === 'DaemonSet' && isOwn ? readDaemonSet(object) : undefined;
  const template = pod ?? daemonSet?.template ?? readTemplate(objectAt(holder, 'metadata'), spec);
  const replicas = wantedReplicas(kind, object);
  const conditions = listAt(objectAt(object, 'status'), 'conditions') ?? [];
  const unscheduled = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
  return {
    kind: shownKind(typed),
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') || stringAt(metadata, 'generateName') || '',
    template,
    pod,
    daemonSet,
    demands:
      kind === 'DaemonSet'
        ? { ...demands, tolerations: [...demands.tolerations, ...daemonTolerations(spec)] }
        : demands,
    namesNode: kind !== 'Pod' || writersOf(object, 'f:nodeName').length > 0,
    spec,
    gates: (listAt(spec, 'schedulingGates') ?? []).flatMap((gate) => stringAt(gate, 'name') ?? []),
    // A pod of a DaemonSet names its node, so no other node counts.
    spread: isDaemonSetOfAnyGroup(shownKind(typed)) || isForOneNode(pod?.owner, spec) ? [] : readHardSpread(spec),
    replicas,
    scheduler: strangersText((unscheduled && stringAt(unscheduled, 'message')) ?? '') || undefined,
  };
}

/** Reads what decides about a workload. `settings`: those that apply to it. */
export function readWorkloadSubject(
  { pod, daemonSet, template }: Pick<Workload, 'pod' | 'daemonSet' | 'template'>,
  namespace: SubjectNamespace,
  settings: Settings,
): Subject {
  if (pod !== undefined) return readPodSubject(pod, namespace, settings);
  if (daemonSet !== undefined) return readDaemonSetSubject(daemonSet, namespace, settings);
  return readTemplateSubject(template, namespace, settings);
}

/** Returns the tolerations that the DaemonSet controller adds to its pods (pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations). */
function daemonTolerations(spec: JsonObject): JsonObject[] {
  const entry = (key: string, effect: string) => ({ key: `node.kubernetes.io/${key}`, operator: 'Exists', effect });
  return [
    ...['not-ready', 'unreachable'].map((key) => entry(key, 'NoExecute')),
    ...['disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'].map((key) => entry(key, 'NoSchedule')),
    ...(spec.hostNetwork === true ? [entry('network-unavailable', 'NoSchedule')] : []),
  ];
}

/**
 * Returns how many pods an object wants at the moment; undefined for a Job that has finished, which is left out.
 *
 * A DaemonSet wants `status.desiredNumberScheduled`; in a file it has no status, and counts as one pod. A CronJob counts as the pods of one
 * run, also between its runs: another number would change from minute to minute, and 0 would hide it. What is suspended wants no pod.
 */
export function wantedReplicas(kind: string, object: JsonObject): number | undefined {
  const spec = objectAt(object, 'spec');
  const status = objectAt(object, 'status');
  switch (kind) {
    case 'Pod':
      return 1;
    case 'DaemonSet':
      return numberAt(status, 'desiredNumberScheduled') ?? 1;
    case 'Job':
      return hasFinished(status) ? undefined : podsOfRun(spec, numberAt(status, 'succeeded') ?? 0);
    case 'CronJob':
      return spec.suspend === true ? 0 : podsOfRun(objectAt(objectAt(spec, 'jobTemplate'), 'spec'), 0);
    default:
      return numberAt(spec, 'replicas') ?? 1;
  }
}

function podsOfRun(spec: JsonObject, succeeded: number): number {
  if (spec.suspend === true) return 0;
  const left = (numberAt(spec, 'completions') ?? Number.POSITIVE_INFINITY) - succeeded;
  return Math.max(0, Math.min(numberAt(spec, 'parallelism') ?? 1, left));
}

function hasFinished(status: JsonObject): boolean {
  return (listAt(status, 'conditions') ?? []).some(
    ({ type, status: state }) => (type === 'Complete' || type === 'Failed') && state === 'True',
  );
}

/** A constraint that the scheduler enforces (`whenUnsatisfiable: DoNotSchedule`) and that counts nodes whose taints keep the pod off. */
export type HardSpread = {
  /** The node label whose values are the domains. */
  readonly topologyKey: string;
  /** Whether nodes count that the pod's own selector and affinity exclude (`nodeAffinityPolicy: Ignore`). */
  readonly ignoresAffinity: boolean;
};

/** A pod carries the constraints in each copy, but hardly more than two of them. */
const MOST_CONSTRAINTS = 16;

/** Reads the hard constraints of a pod's or a template's `spec` that count nodes whatever their taints. */
export function readHardSpread(spec: JsonObject): readonly HardSpread[] {
  return (listAt(spec, 'topologySpreadConstraints') ?? [])
    .filter(({ whenUnsatisfiable, nodeTaintsPolicy }) => {
      return whenUnsatisfiable === 'DoNotSchedule' && nodeTaintsPolicy !== 'Honor';
    })
    .slice(0, MOST_CONSTRAINTS)
    .map((constraint) => ({
      topologyKey: stringAt(constraint, 'topologyKey') ?? '',
      ignoresAffinity: constraint.nodeAffinityPolicy === 'Ignore',
    }));
}
