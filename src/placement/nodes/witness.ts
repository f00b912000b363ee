import type { JsonObject } from '../../kit/json.ts';
import { isArchitecture } from '../../kit/platform.ts';
import { type Taint, tolerates } from '../patch/tolerations.ts';
import { isWitness, type Node, nodeArchitecture } from './node.ts';

/**
 * What a node has reported about its architecture since this process first saw it. A kubelet can report any architecture, and objects
 * of others follow the cluster's architectures. So a node counts for one architecture only, the first that it reported, and only after
 * it has been ready for a while.
 */
export type Witness = {
  /** The first architecture that the node reported. */
  readonly architecture: string;
  /** Since when the node has been ready and has reported it, in milliseconds on the monotonic clock; undefined: it is not. */
  readonly since: number | undefined;
  /** Whether the architecture counts. Once it does, it counts until the Node object is deleted, also while the node is not ready. */
  readonly counts: boolean;
};

/** How long a node must have been ready. A cluster that follows every node that joins would follow a broken one, too. */
const WITNESS_MS = 60_000;

/**
 * Returns what is known of a node after it was seen at this time; undefined before it reported an architecture, and while it is
 * being deleted. `isFirst`: the node was there when this process first listed the nodes, so it has not just joined.
 */
export function witnessOf(before: Witness | undefined, node: Node, now: number, isFirst: boolean): Witness | undefined {
  const reported = nodeArchitecture(node);
  if (node.deleting) return undefined;
  const architecture = before?.architecture ?? reported;
  if (architecture === undefined) return undefined;
  const speaks = reported === architecture && isWitness(node);
  const since = speaks && node.ready ? (before?.since ?? now) : undefined;
  const isOld = since !== undefined && now - since >= WITNESS_MS;
  return { architecture, since, counts: before?.counts === true || isOld || (isFirst && speaks) };
}

/** Returns the time at which a node's architecture begins to count if nothing changes; undefined: it counts, or nothing is due. */
export function countsAt({ since, counts }: Witness): number | undefined {
  return counts || since === undefined ? undefined : since + WITNESS_MS;
}

/**
 * Whether a node must not get its taint yet. `counting`: the architectures that count. `isNeeded`: whether a DaemonSet that follows
 * them {@link runsOnlyBeforeTaint}. A node is often not ready because its network comes from such a DaemonSet, which tolerates the
 * taint only after the node has been ready for a while. Until then Kubernetes' own taint keeps other pods away.
 */
export function waitsToBeReady(
  node: Node,
  counting: readonly string[],
  isNeeded: (architecture: string) => boolean,
): boolean {
  const architecture = nodeArchitecture(node);
  if (node.ready || architecture === undefined || !isArchitecture(architecture)) return false;
  return !counting.includes(architecture) && isNeeded(architecture);
}

const NOT_READY: Taint = { key: 'node.kubernetes.io/not-ready', value: '', effect: 'NoSchedule' };

/**
 * Whether pods with these tolerations start on a node that is not ready, but not on one with archaware's taint. Kubernetes adds no
 * toleration of `not-ready:NoSchedule` to daemon pods, so any other pod starts only once the node is ready, and gains nothing if the
 * taint waits.
 */
export function runsOnlyBeforeTaint(tolerations: readonly JsonObject[], taint: Taint): boolean {
  const tolerated = (one: Taint) => tolerations.some((toleration) => tolerates(toleration, one));
  return tolerated(NOT_READY) && !tolerated(taint);
}

/** Returns the Event's text if a node reports another architecture than before, else undefined. */
export function architectureChangeNote(before: Node, now: Node): string | undefined {
  const [was, is] = [nodeArchitecture(before), nodeArchitecture(now)];
  if (before.uid !== now.uid || was === undefined || is === undefined || was === is) return undefined;
  return (
    `the node reported the architecture ${was} before and reports ${is} now: its own taint follows, and no pod or DaemonSet does; ` +
    'if this is another machine under the same name, delete the Node object so that it joins again'
  );
}
