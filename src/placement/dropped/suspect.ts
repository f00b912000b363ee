import type { Decision } from '../decide.ts';
import type { SkipReason } from '../eligibility.ts';
import type { Pod } from '../objects/pod.ts';
import { type WorkloadName, workloadOf } from '../workloads/owner.ts';

/** A pod with what was decided about it, and the architecture of its node. */
export type SeenPod = {
  readonly key: string;
  readonly pod: Pick<
    Pod,
    'namespace' | 'name' | 'owner' | 'labels' | 'createdAt' | 'phase' | 'nodeName' | 'deleting' | 'mirror'
  >;
  readonly decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason } | undefined;
  readonly nodeArchitecture: string | undefined;
};

/** Pods of a workload with the same template and the same architectures. */
type Cohort = {
  readonly template: string;
  /** The architectures that were decided or written for them; undefined: not known. */
  readonly set: readonly string[] | undefined;
  /** When the first and the last of them were created. */
  firstAt: number;
  lastAt: number;
  lastKey: string;
  /** How many of them run now, by the architecture of the node. */
  readonly running: Map<string, number>;
  /** One of them that ran, for each architecture. */
  readonly examples: Map<string, string>;
};

type Group = { readonly workload: WorkloadName; readonly cohorts: Map<string, Cohort> };

/** The pods of a cluster by workload. It lives as long as one look at all pods. */
type Workloads = Map<string, Group>;

/** Creates an empty collection. */
export function createWorkloads(): Workloads {
  return new Map();
}

/** A workload whose newest template may run on fewer architectures than pods that run now. Only its images can say so. */
export type Suspect = {
  readonly workload: WorkloadName;
  /** The pods to compare, by key. `after`: undefined for a DaemonSet, whose template is compared. */
  readonly before: string;
  readonly after: string | undefined;
  /** The architectures that were known for the earlier pod. */
  readonly ranOn: readonly string[] | undefined;
  /** Whether the newer template follows from the times of the pods. Else the API server must say which one is newer. */
  readonly isOrdered: boolean;
  /** The same as long as the suspicion is the same. */
  readonly id: string;
  /** How many pods run now, by the architecture of their node. */
  readonly running: ReadonlyMap<string, number>;
};

/** A Job that a CronJob made has the name of the CronJob and the minute of the run. */
const OF_CRON_JOB = /^(.+)-\d{8,}$/;
const REVISION = 'controller-revision-hash';

/** Returns the name of a pod's workload; undefined for a pod that is no part of one. */
function ownerOf(pod: SeenPod['pod']): WorkloadName | undefined {
  if (pod.owner === undefined) return undefined;
  const workload = workloadOf(pod);
  const [, cronJob] = (workload.kind === 'Job' && OF_CRON_JOB.exec(workload.name)) || [];
  return cronJob === undefined ? workload : { ...workload, kind: 'CronJob', name: cronJob };
}

/** Adds a pod to its workload. Returns whether it counts. */
export function addPod(workloads: Workloads, { key, pod, decision, nodeArchitecture }: SeenPod): boolean {
  if (pod.deleting || pod.mirror) return false;
  const workload = ownerOf(pod);
  const hasEnded = pod.phase === 'Succeeded';
  // A run of a CronJob has usually ended when the next one begins.
  if (workload === undefined || pod.phase === 'Failed' || (hasEnded && workload.kind !== 'CronJob')) return false;
  const name = keyOf(workload);
  const group = workloads.get(name) ?? { workload, cohorts: new Map<string, Cohort>() };
  workloads.set(name, group);
  const template = `${pod.owner?.uid ?? ''} ${pod.labels[REVISION] ?? ''}`;
  const set = knownSet(decision);
  const id = `${template} ${set?.join() ?? '?'}`;
  const known = group.cohorts.get(id);
  const { createdAt } = pod;
  const cohort: Cohort = known ?? {
    ...{ template, set, firstAt: createdAt, lastAt: createdAt, lastKey: key },
    ...{ running: new Map(), examples: new Map() },
  };
  if (known === undefined) group.cohorts.set(id, cohort);
  cohort.firstAt = Math.min(cohort.firstAt, createdAt);
  if (createdAt >= cohort.lastAt) [cohort.lastAt, cohort.lastKey] = [createdAt, key];
  if (pod.nodeName !== undefined && (pod.phase === 'Running' || hasEnded)) {
    const architecture = nodeArchitecture ?? '';
    if (!cohort.examples.has(architecture)) cohort.examples.set(architecture, key);
    if (!hasEnded) cohort.running.set(architecture, (cohort.running.get(architecture) ?? 0) + 1);
  }
  return true;
}

function keyOf({ kind, namespace, name }: WorkloadName): string {
  return `${kind} ${namespace}/${name}`;
}

/** Returns the architectures of a decision that rests on knowledge: a guess, an annotation and the cluster's own set say nothing. */
export function knownSet(decision: SeenPod['decision']): readonly string[] | undefined {
  if (decision?.kind === 'hold') return [];
  if (decision?.kind !== 'place' || decision.unknown.length > 0) return undefined;
  const isKnown = decision.basis === 'images' || (decision.basis === 'written' && decision.architectures.length > 0);
  return isKnown ? decision.architectures : undefined;
}

/**
 * Returns the workloads whose newest template may have lost an architecture. `cluster`: the architectures that count. `templateSetOf`: the
 * architectures that are known for the template of a DaemonSet (`namespace/name`).
 */
export function* suspectsIn(
  workloads: Workloads,
  cluster: readonly string[],
  templateSetOf: (daemonSet: string) => readonly string[] | undefined,
): Generator<Suspect | undefined> {
  for (const { workload, cohorts } of workloads.values()) {
    yield workload.kind === 'DaemonSet'
      ? ofDaemonSet(workload, [...cohorts.values()], templateSetOf(`${workload.namespace}/${workload.name}`), cluster)
      : ofPods(workload, [...cohorts.values()], cluster);
  }
}

function ofDaemonSet(
  workload: WorkloadName,
  cohorts: readonly Cohort[],
  set: readonly string[] | undefined,
  cluster: readonly string[],
): Suspect | undefined {
  if (set === undefined) return undefined;
  const lost = cluster.filter((name) => !set.includes(name));
  const running = sumOf(cohorts);
  for (const { template, examples } of cohorts) {
    const [architecture] = lost.filter((name) => examples.has(name));
    const before = architecture === undefined ? undefined : examples.get(architecture);
    if (before === undefined) continue;
    const id = `${keyOf(workload)} ${template} ${set.join()}`;
    return { workload, before, after: undefined, ranOn: undefined, isOrdered: true, id, running };
  }
  return undefined;
}

function ofPods(workload: WorkloadName, cohorts: readonly Cohort[], cluster: readonly string[]): Suspect | undefined {
  if (cohorts.length < 2) return undefined;
  const firstOf = new Map<string, number>();
  for (const { template, firstAt } of cohorts) {
    firstOf.set(template, Math.min(firstOf.get(template) ?? firstAt, firstAt));
  }
  const age = ({ template, lastAt }: Cohort): readonly [number, number] => [firstOf.get(template) ?? 0, lastAt];
  // The age of a template is that of its first pod: an old template makes new pods, too. The smaller set comes last where both began
  // in the same second, and the API server must then say which template is newer.
  const sorted = [...cohorts].sort((one, other) => {
    const [[first, last], [otherFirst, otherLast]] = [age(one), age(other)];
    return first - otherFirst || last - otherLast || (other.set?.length ?? 0) - (one.set?.length ?? 0);
  });
  const newest = sorted.at(-1);
  const set = newest?.set;
  if (newest === undefined || set === undefined) return undefined;
  const lost = cluster.filter((name) => !set.includes(name));
  let found: { cohort: Cohort; before: string; weight: number } | undefined;
  for (const cohort of sorted.slice(0, -1)) {
    const had = lost.filter((name) => cohort.set?.includes(name) === true || cohort.examples.has(name));
    const [onLost] = had.filter((name) => cohort.examples.has(name));
    const before = onLost === undefined ? firstValue(cohort.examples) : cohort.examples.get(onLost);
    if (had.length === 0 || before === undefined) continue;
    const weight = had.reduce((sum, name) => sum + (cohort.running.get(name) ?? 0), 0);
    if (found === undefined || weight > found.weight) found = { cohort, before, weight };
  }
  if (found === undefined) return undefined;
  const { cohort, before } = found;
  const [[first, last], [otherFirst, otherLast]] = [age(cohort), age(newest)];
  // Of one template, the answer of the registry says what is newer: the tag as it is now is compared.
  const isOrdered = cohort.template === newest.template ? last <= otherLast : first < otherFirst;
  return {
    ...{ workload, before, after: newest.lastKey, ranOn: cohort.set },
    isOrdered,
    id: `${keyOf(workload)} ${isOrdered} ${cohort.template} ${cohort.set?.join() ?? ''} ${newest.template} ${set.join()}`,
    running: sumOf(cohorts),
  };
}

function firstValue(all: ReadonlyMap<string, string>): string | undefined {
  const [first] = all.values();
  return first;
}

function sumOf(cohorts: readonly Cohort[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const { running } of cohorts) for (const [name, count] of running) sum.set(name, (sum.get(name) ?? 0) + count);
  return sum;
}
