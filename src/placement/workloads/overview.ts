import type { JsonObject } from '../../kit/json.ts';
import type { Decision } from '../decide.ts';
import { isLeftAlone, type SkipReason } from '../eligibility.ts';
import { onlySchedulable, withCompatible } from '../images.ts';
import { lacking } from '../patch/tolerations.ts';
import { onlyObserves, usesTaints, wantedTolerations } from '../placing.ts';
import type { Settings } from '../settings.ts';
import type { WorkloadName } from './owner.ts';

/** A pod, or the template of a DaemonSet, with the decision about it. */
export type Subject = {
  readonly workload: WorkloadName;
  readonly decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
  readonly settings: Settings;
  readonly tolerations: readonly JsonObject[];
  /** Whether the pod has a node. */
  readonly bound: boolean;
  /** The architecture of that node; undefined if it is not known. */
  readonly nodeArchitecture: string | undefined;
};

/** What is true of the cluster for every subject. */
export type Surroundings = {
  /** The architectures of the nodes. */
  readonly architectures: readonly string[];
  /** Whether every node gets the taint, so that no pod can run without a toleration. */
  readonly allTainted: boolean;
};

/** Counts of workloads. A workload is in one of the first five groups, and may be in the last three as well. */
export type Overview = {
  readonly workloads: number;
  /** They run on every architecture of the cluster. */
  readonly anywhere: number;
  /** Workloads by the architectures that they are limited to: `amd64`, `amd64, arm64`. */
  readonly limited: ReadonlyMap<string, number>;
  /** Their images have no architecture in common, or none that a node has. */
  readonly nowhere: number;
  /** An image is not known. */
  readonly unknown: number;
  /** archaware leaves them alone. */
  readonly leftAlone: number;
  readonly onWrongNode: number;
  /** They have a pod that has a node now, and would not get one again. */
  readonly pendingAtRestart: number;
  /** They have a pod that waits now, and for which there is no node. */
  readonly pendingNow: number;
};

type Group = {
  readonly rank: number;
  readonly kind: 'anywhere' | 'limited' | 'nowhere' | 'unknown' | 'leftAlone';
  readonly set: string;
};

/** Counts workloads by the decisions about their pods. Objects that are ending or finished do not count. */
export function overviewOf(subjects: Iterable<Subject>, surroundings: Surroundings): Overview {
  const groups = new Map<string, Group>();
  const [wrong, later, now] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const subject of subjects) {
    const group = groupOf(subject, surroundings.architectures);
    if (group === undefined) continue;
    const { kind, namespace, name } = subject.workload;
    const key = `${kind} ${namespace}/${name}`;
    const before = groups.get(key);
    // During a rollout the pods of a workload differ. The one that can run on the fewest nodes says most.
    if (before === undefined || group.rank > before.rank) groups.set(key, group);
    if (isOnWrongNode(subject)) wrong.add(key);
    if (hasNoNode(subject, surroundings)) (subject.bound ? later : now).add(key);
  }
  const all = [...groups.values()];
  const count = (wanted: Group['kind']) => all.filter(({ kind }) => kind === wanted).length;
  const limited = new Map<string, number>();
  for (const { kind, set } of all) if (kind === 'limited') limited.set(set, (limited.get(set) ?? 0) + 1);
  return {
    workloads: all.length,
    anywhere: count('anywhere'),
    limited: new Map([...limited].sort(([one, first], [other, second]) => second - first || (one < other ? -1 : 1))),
    nowhere: count('nowhere'),
    unknown: count('unknown'),
    leftAlone: count('leftAlone'),
    onWrongNode: wrong.size,
    pendingAtRestart: later.size,
    pendingNow: now.size,
  };
}

function groupOf({ decision, settings }: Subject, cluster: readonly string[]): Group | undefined {
  switch (decision.kind) {
    case 'skip':
      return isLeftAlone(decision.reason) ? { rank: 0, kind: 'leftAlone', set: '' } : undefined;
    case 'wait':
      return { rank: 100, kind: 'unknown', set: '' };
    case 'hold':
      return { rank: 101, kind: 'nowhere', set: '' };
    case 'place': {
      if (decision.unknown.length > 0) return { rank: 100, kind: 'unknown', set: '' };
      const usable = onlySchedulable(cluster, settings);
      const here = decision.architectures.filter((name) => usable.includes(name)).sort();
      if (decision.followsCluster || here.length === usable.length) return { rank: 1, kind: 'anywhere', set: '' };
      if (here.length === 0) return { rank: 101, kind: 'nowhere', set: '' };
      return { rank: 50 - here.length, kind: 'limited', set: here.join(', ') };
    }
    default:
      return decision satisfies never;
  }
}

/**
 * Whether a pod is on a node whose architecture one of its images lacks. A guess about unknown images proves nothing, and a node
 * that only `architectures.schedulable` excludes can run the pod.
 */
export function isOnWrongNode({ decision, settings, nodeArchitecture: node }: Subject): boolean {
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

/** Whether a new pod like this one would find no node. */
function hasNoNode(
  { decision, settings, tolerations, workload }: Subject,
  { architectures, allTainted }: Surroundings,
): boolean {
  if (onlyObserves(settings)) return false;
  // The DaemonSet controller creates no pod for a node that the template does not tolerate.
  if (workload.kind === 'DaemonSet') return false;
  switch (decision.kind) {
    case 'skip': {
      if (!isLeftAlone(decision.reason) || !allTainted || !usesTaints(settings)) return false;
      const wanted = wantedTolerations(settings, architectures);
      return wanted.length > 0 && lacking(tolerations, wanted).length === wanted.length;
    }
    case 'wait':
      return false;
    case 'hold':
      return true;
    case 'place':
      return !decision.followsCluster && !decision.architectures.some((name) => architectures.includes(name));
    default:
      return decision satisfies never;
  }
}

/** Returns the counts as five lines. `images`: how many images are not known. `where`: ` in namespace shop`, or an empty text. */
export function overviewLines(overview: Overview, images: number, where: string): string[] {
  const { workloads, anywhere, limited, nowhere, leftAlone, onWrongNode, pendingAtRestart, pendingNow } = overview;
  const sets = [...limited].map(
    ([set, count], index) => `${count} ${index > 0 ? '' : count === 1 ? 'runs ' : 'run '}on ${set} only`,
  );
  const others = [
    ...(nowhere > 0 ? [`${nowhere} on no node of the cluster`] : []),
    ...(leftAlone > 0 ? [`${leftAlone} ${leftAlone === 1 ? 'is' : 'are'} left alone`] : []),
  ];
  return [
    `${workloads} ${workloads === 1 ? 'workload' : 'workloads'}${where}: ${anywhere} can run on every architecture of the cluster`,
    `  ${[...(sets.length === 0 ? ['0 run on some architectures only'] : sets), ...others].join(', ')}`,
    `  ${onWrongNode} on a wrong node now`,
    `  ${pendingAtRestart} would be Pending at ${pendingAtRestart === 1 ? 'its' : 'their'} next restart${pendingNow > 0 ? `, ${pendingNow} ${pendingNow === 1 ? 'is' : 'are'} Pending now` : ''}`,
    `  ${images} ${images === 1 ? 'image' : 'images'} unknown`,
  ];
}
