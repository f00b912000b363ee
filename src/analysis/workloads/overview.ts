import type { JsonObject } from '../../kit/json.ts';
import type { Decision } from '../../placement/decide.ts';
import { type SkipReason, skipFacts } from '../../placement/eligibility.ts';
import { onlySchedulable, withCompatible } from '../../placement/images.ts';
import type { Asked } from '../../placement/objects/asked-platform.ts';
import {
  isDaemonSetOfAnyGroup,
  isOfKubernetes,
  isOtherDaemonSet,
  type NamedObject,
  type Owner,
  shownKind,
} from '../../placement/objects/kinds.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { lacking, tolerationText } from '../../placement/patch/tolerations.ts';
import { onlyObserves, usesTaints, wantedTolerations } from '../../placement/placing.ts';
import { contradictionOf, decisionNote, heldNote, skipNote, withinText } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import type { nextNode } from './next-node.ts';

/** A pod, or the template of a DaemonSet, with the decision about it. */
export type WorkloadSubject = {
  readonly workload: WorkloadName;
  readonly decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
  readonly settings: Settings;
  readonly tolerations: readonly JsonObject[];
  /** Whether the pod has a node. */
  readonly bound: boolean;
  /** The architecture of that node; undefined if it is not known. */
  readonly nodeArchitecture: string | undefined;
  /** The architectures that the pod itself asks for; undefined: any. */
  readonly asked: Asked | undefined;
  /** What the taints do to its topology spread; absent if nothing. */
  readonly spread?: string | undefined;
  /** Where another one would go, if that is not a right node; absent: it would go to one, or is on one. */
  readonly next?: ReturnType<typeof nextNode>;
};

/** What is true of the cluster for every subject. */
export type ClusterSurroundings = {
  /** The architectures of the nodes; undefined if the nodes may not be read. */
  readonly architectures: readonly string[] | undefined;
  /** Whether every node gets the taint, so that no pod can run without a toleration. */
  readonly allTainted: boolean;
};

/** Where the pods of a workload can run. A workload is in exactly one of these groups. */
type WorkloadReach =
  /** On every architecture of the cluster. */
  | 'anywhere'
  /** On some architectures of the cluster only. */
  | 'limited'
  /** Their images have no architecture in common, or none that a node has. */
  | 'nowhere'
  /** An image is not known. */
  | 'unknown'
  /** archaware leaves them alone. */
  | 'left-alone';

/** A workload, and what is true of its pods. */
export type JudgedWorkload = WorkloadName & {
  readonly reach: WorkloadReach;
  /** Only for `limited`: the architectures. */
  readonly architectures?: readonly string[];
  /** It has a pod on a node whose architecture one of its images lacks; absent if the nodes are not known. */
  readonly onWrongNode?: boolean;
  /** It has a pod that has a node now, and would not get one again. */
  readonly pendingAtRestart: boolean;
  /** It has a pod that waits now, and that no node can run. */
  readonly pendingNow: boolean;
  /** Why it is on a wrong node, Pending, or on no node; empty if it is none of these. */
  readonly why: string;
  /** What the taints do to its topology spread, and what helps; absent if nothing. */
  readonly spread?: string;
};

/** Judges workloads by the decisions about their pods, sorted by kind, namespace and name. Ending or finished objects do not count. */
export function overviewOf(subjects: Iterable<WorkloadSubject>, surroundings: ClusterSurroundings): JudgedWorkload[] {
  const found = new Map<string, { group: WorkloadGroup; workload: JudgedWorkload }>();
  for (const subject of subjects) {
    const group = groupOf(subject, surroundings.architectures);
    if (group === undefined) continue;
    const { kind, namespace, name } = subject.workload;
    const key = `${kind} ${namespace}/${name}`;
    const before = found.get(key);
    // During a rollout the pods of a workload differ. The one that can run on the fewest nodes says most.
    const says = before === undefined || group.rank > before.group.rank ? group : before.group;
    const noNode = whyNoNode(subject, surroundings);
    const onWrongNode = isOnWrongNode(subject);
    const spread = before?.workload.spread ?? subject.spread;
    const reason = noNode ?? (onWrongNode || group.reach === 'nowhere' ? whatItRunsOn(subject) : '');
    const workload: JudgedWorkload = {
      ...{ kind, namespace, name, reach: says.reach },
      ...(says.reach === 'limited' ? { architectures: says.architectures } : {}),
      ...(surroundings.architectures === undefined
        ? {}
        : { onWrongNode: onWrongNode || before?.workload.onWrongNode === true }),
      pendingAtRestart: (noNode !== undefined && subject.bound) || before?.workload.pendingAtRestart === true,
      pendingNow: (noNode !== undefined && !subject.bound) || before?.workload.pendingNow === true,
      why: before?.workload.why || reason,
      ...(spread === undefined ? {} : { spread }),
    };
    found.set(key, { group: says, workload });
  }
  return [...found.values()].map(({ workload }) => workload).sort(byName);
}

/** Compares two objects by kind, namespace and name. */
export function byName(one: NamedObject, other: NamedObject): number {
  // No name has a NUL, so a longer one never changes the order of what follows it.
  const keyOf = ({ kind, namespace = '', name }: NamedObject) => [kind, namespace, name].join('\0');
  const [first, second] = [keyOf(one), keyOf(other)];
  if (first === second) return 0;
  return first < second ? -1 : 1;
}

type WorkloadGroup = {
  readonly rank: number;
  readonly reach: WorkloadReach;
  readonly architectures: readonly string[];
};

function groupOf(
  { decision, settings }: WorkloadSubject,
  cluster: readonly string[] | undefined,
): WorkloadGroup | undefined {
  switch (decision.kind) {
    case 'skip':
      return skipFacts(decision.reason).isLeftAlone ? { rank: 0, reach: 'left-alone', architectures: [] } : undefined;
    case 'wait':
      return { rank: 100, reach: 'unknown', architectures: [] };
    case 'hold':
      return { rank: 101, reach: 'nowhere', architectures: [] };
    case 'place': {
      if (decision.unknown.length > 0) return { rank: 100, reach: 'unknown', architectures: [] };
      const usable = cluster && onlySchedulable(cluster, settings);
      const here = decision.architectures.filter((name) => usable?.includes(name) ?? true).sort();
      if (decision.followsCluster) return { rank: 1, reach: 'anywhere', architectures: [] };
      if (here.length === 0) return { rank: 101, reach: 'nowhere', architectures: [] };
      if (here.length === usable?.length) return { rank: 1, reach: 'anywhere', architectures: [] };
      return { rank: 50 - here.length, reach: 'limited', architectures: here };
    }
    default:
      return decision satisfies never;
  }
}

/**
 * Whether a pod is on a node whose architecture one of its images lacks. A guess about unknown images proves nothing, and a node
 * that only `architectures.schedulable` excludes can run the pod.
 */
export function isOnWrongNode({ decision, settings, nodeArchitecture: node }: WorkloadSubject): boolean {
  if (node === undefined) return false;
  if (decision.kind === 'hold') {
    return decision.images.some(({ platforms }) => {
      const own = new Set(platforms.map((platform) => platform.split('/')[1] ?? ''));
      return !withCompatible(own, settings.compatible).includes(node);
    });
  }
  if (decision.kind !== 'place' || decision.followsCluster || decision.unknown.length > 0) return false;
  const isProved = decision.basis === 'images' || decision.basis === 'statement' || decision.basis === 'written';
  return isProved && onlySchedulable([node], settings).length > 0 && !decision.architectures.includes(node);
}

/** Returns why a new pod like this one would find no node; undefined if it would find one. */
function whyNoNode(subject: WorkloadSubject, { architectures, allTainted }: ClusterSurroundings): string | undefined {
  const { decision, settings, tolerations, workload, asked } = subject;
  if (onlyObserves(settings)) return undefined;
  // Its controller creates no pod for a node that the template does not tolerate.
  if (isDaemonSetOfAnyGroup(workload.kind)) return undefined;
  switch (decision.kind) {
    case 'skip': {
      if (!skipFacts(decision.reason).isLeftAlone || !allTainted || !usesTaints(settings)) return undefined;
      const wanted = wantedTolerations(settings, architectures ?? []);
      const lacksAll = wanted.length > 0 && lacking(tolerations, wanted).length === wanted.length;
      return lacksAll ? `${skipNote(decision.reason)}, and it tolerates no node` : undefined;
    }
    case 'wait':
      return undefined;
    case 'hold':
      return whatItRunsOn(subject);
    case 'place': {
      // What is unknown proves nothing.
      if (decision.followsCluster || decision.unknown.length > 0) return undefined;
      const there = decision.architectures.filter((name) => architectures?.includes(name) ?? true);
      if (there.length === 0 || contradictionOf(decision, asked, settings) !== undefined) return whatItRunsOn(subject);
      if (subject.next === 'nowhere') return `${whatItRunsOn(subject)}, and those nodes do not take it`;
      const isAskedFor = asked === undefined || there.some((name) => asked.architectures.includes(name));
      return isAskedFor ? undefined : `requires ${asked.text}, and no node of the cluster has that`;
    }
    default:
      return decision satisfies never;
  }
}

/** Returns what a subject's images run on, or that they contradict each other or what the pod asks for. */
function whatItRunsOn({ decision, settings, asked }: WorkloadSubject): string {
  if (decision.kind === 'hold' && decision.asked !== undefined) return heldNote(decision, '', settings.schedulable);
  if (decision.kind === 'hold') return `its images have no architecture in common${withinText(settings.schedulable)}`;
  if (decision.kind !== 'place') return '';
  return contradictionOf(decision, asked, settings) ?? decisionNote(decision, '', settings.schedulable);
}

/** Returns the counts as five lines. `images`: how many images are not known. `where`: ` in namespace shop`, or an empty text. */
export function overviewLines(all: readonly JudgedWorkload[], images: number, where: string): string[] {
  const count = (is: (workload: JudgedWorkload) => boolean) => all.filter(is).length;
  const reaching = (reach: WorkloadReach) => count((workload) => workload.reach === reach);
  const [nowhere, leftAlone] = [reaching('nowhere'), reaching('left-alone')];
  const sets = limitedSets(all).map(
    ([set, { length }], index) => `${length} ${index > 0 ? '' : length === 1 ? 'runs ' : 'run '}on ${set} only`,
  );
  const others = [
    ...(nowhere > 0 ? [`${nowhere} on no node of the cluster`] : []),
    ...(leftAlone > 0 ? [`${leftAlone} ${leftAlone === 1 ? 'is' : 'are'} left alone`] : []),
  ];
  const later = count(({ pendingAtRestart }) => pendingAtRestart);
  const now = count(({ pendingNow }) => pendingNow);
  return [
    `${all.length} ${all.length === 1 ? 'workload' : 'workloads'}${where}: ${reaching('anywhere')} can run on every architecture of the cluster`,
    `  ${[...(sets.length === 0 ? ['0 run on some architectures only'] : sets), ...others].join(', ')}`,
    all.some(({ onWrongNode }) => onWrongNode === undefined)
      ? '  the nodes may not be listed, so it is not known who is on a wrong node'
      : `  ${count(({ onWrongNode }) => onWrongNode === true)} on a wrong node now`,
    `  ${later} would be Pending at ${later === 1 ? 'its' : 'their'} next restart${now > 0 ? `, ${now} ${now === 1 ? 'is Pending now and fits' : 'are Pending now and fit'} no node` : ''}`,
    `  ${images} ${images === 1 ? 'image' : 'images'} unknown`,
  ];
}

/** Returns the limited workloads by their architectures (`amd64 and arm64`), the largest group first. */
function limitedSets(all: readonly JudgedWorkload[]): (readonly [set: string, workloads: JudgedWorkload[]])[] {
  const sets = new Map<string, JudgedWorkload[]>();
  for (const workload of all) {
    if (workload.reach !== 'limited') continue;
    // The line that lists the sets has commas between them.
    const set = (workload.architectures ?? []).join(' and ');
    sets.set(set, [...(sets.get(set) ?? []), workload]);
  }
  return [...sets].sort(([one, first], [other, second]) => second.length - first.length || (one < other ? -1 : 1));
}

/** The object that a user knows as the source of pods. */
export type WorkloadName = { readonly kind: string; readonly namespace: string; readonly name: string };

/** The label with which the Deployment controller tells the ReplicaSets of a Deployment apart. */
const TEMPLATE_HASH = 'pod-template-hash';

/**
 * Returns the name of the Deployment of a pod whose ReplicaSet was not read: the Deployment controller names a ReplicaSet after its
 * Deployment and the hash of the template, and labels its pods with that hash. Undefined for other pods.
 */
export function deploymentOf(owner: Owner, labels: Pod['labels']): string | undefined {
  const hash = Object.hasOwn(labels, TEMPLATE_HASH) ? labels[TEMPLATE_HASH] : undefined;
  const isOfDeployment =
    owner.kind === 'ReplicaSet' && isOfKubernetes(owner) && hash && owner.name.endsWith(`-${hash}`);
  return isOfDeployment ? owner.name.slice(0, -hash.length - 1) || undefined : undefined;
}

/** Returns the workload of a pod: its owner, the Deployment behind a ReplicaSet, or the pod itself if nothing owns it. */
export function workloadOf(pod: Pick<Pod, 'namespace' | 'name' | 'owner' | 'labels'>): WorkloadName {
  const { namespace, name, owner, labels } = pod;
  if (owner === undefined) return { kind: 'Pod', namespace, name };
  const deployment = deploymentOf(owner, labels);
  if (deployment !== undefined) return { kind: 'Deployment', namespace, name: deployment };
  return { kind: shownKind(owner), namespace, name: owner.name };
}

type DecidedPod = {
  readonly pod: Pick<Pod, 'namespace' | 'name' | 'owner' | 'labels' | 'tolerations' | 'written'>;
  readonly decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
  readonly settings: Settings;
};

/** A DaemonSet of another API group whose template lacks tolerations, and which, as text. */
type OtherDaemonSet = WorkloadName & { readonly missing: readonly string[] };

/**
 * Returns the DaemonSets of other API groups whose templates lack tolerations, as far as their pods show it. Their controllers
 * judge a node's taints by the template before they create a pod, so what a pod is given comes too late for the next one.
 */
export function untoleratingDaemonSets(pods: Iterable<DecidedPod>): OtherDaemonSet[] {
  const found = new Map<string, OtherDaemonSet>();
  for (const { pod, decision, settings } of pods) {
    if (decision.kind !== 'place' || !isOtherDaemonSet(pod.owner)) continue;
    const wanted = wantedTolerations(settings, decision.architectures);
    // What archaware gave the pod is not in the template.
    const own = pod.written?.tolerations ? [] : (pod.tolerations ?? []);
    const missing = lacking(own, wanted).map(tolerationText);
    const name = workloadOf(pod);
    if (missing.length > 0) found.set(`${name.kind} ${name.namespace}/${name.name}`, { ...name, missing });
  }
  return [...found.values()];
}

/** The text about one of them for the person who can change its template. */
export function otherDaemonSetNote({ kind, namespace, name, missing }: OtherDaemonSet): string {
  return `${kind} ${namespace}/${name} creates pods only on nodes whose taints its template tolerates, and archaware writes only templates of apps/v1: add the tolerations ${missing.join(', ')} to its template`;
}
