import { strangersText } from '../../kit/cut.ts';
import { utcTime } from '../../kit/duration.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { isOurTaint, readManaged } from '../../placement/nodes/managed.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { readPod } from '../../placement/objects/pod.ts';
import { tolerates } from '../../placement/patch/tolerations.ts';
import type { Settings } from '../../placement/settings.ts';
import { eventTime } from '../event-time.ts';

/** A pod that waits because of archaware: it has the gate, or it tolerates none of the taints of nodes that it may use. */
export type WaitingPod = {
  readonly namespace: string;
  readonly name: string;
  readonly ageMs: number;
  readonly gated: boolean;
  /** Why: archaware's last Event about it, else what is known without one. */
  readonly reason: string;
};

/** The pods that wait, and the oldest of them, oldest first. */
export type Waiting = { readonly count: number; readonly oldest: readonly WaitingPod[] };

const MOST_SHOWN = 5;

/** A taint as it is on a node. */
type SeenTaint = { readonly key: string; readonly value: string; readonly effect: string };

/** Returns archaware's taints on the nodes, each once. */
export function taintsOn(nodes: Iterable<Node>, { taints }: Pick<Settings, 'taints'>): SeenTaint[] {
  const found = new Map<string, SeenTaint>();
  for (const node of nodes) {
    const managed = readManaged(node.managed);
    for (const taint of node.taints ?? []) {
      const ours = isOurTaint(taint, managed, taints) || (taint.key === taints.key && taint.effect === taints.effect);
      if (!ours) continue;
      const [key, value, effect] = ['key', 'value', 'effect'].map((field) => stringAt(taint, field) ?? '');
      found.set(`${key}=${value}:${effect}`, { key: key ?? '', value: value ?? '', effect: effect ?? '' });
    }
  }
  return [...found.values()];
}

/**
 * Reads a pod without a node; undefined if it does not wait because of archaware. Since Kubernetes 1.36 the scheduler does not say
 * which taint keeps a pod away, so a pod counts if it tolerates none of archaware's taints and the scheduler mentions taints. If a
 * pod asks for an architecture, only the taints of that architecture count: the pod may tolerate the architectures of its images,
 * and ask for another one.
 */
export function readWaiting(object: JsonObject, taints: readonly SeenTaint[], nowMs: number): WaitingPod | undefined {
  const pod = readPod(object);
  if (pod.nodeName !== undefined || pod.deleting || pod.phase === 'Succeeded' || pod.phase === 'Failed')
    return undefined;
  const conditions = listAt(objectAt(object, 'status'), 'conditions') ?? [];
  const unscheduled = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
  const message = strangersText((unscheduled && stringAt(unscheduled, 'message')) ?? '');
  const present = pod.tolerations ?? [];
  const { asked } = pod;
  const possible = asked === undefined ? taints : taints.filter(({ value }) => asked.architectures.includes(value));
  const lacks =
    message.includes('untolerated taint') &&
    possible.length > 0 &&
    !possible.some((taint) => present.some((toleration) => tolerates(toleration, taint)));
  if (pod.gated === undefined && !lacks) return undefined;
  const { namespace, name, createdAt } = pod;
  const reason = pod.gated === undefined ? message : 'it has the gate, because an image is not known yet';
  return { namespace, name, ageMs: Math.max(0, nowMs - createdAt), gated: pod.gated !== undefined, reason };
}

/** Returns the pods that have waited longest. */
export function oldestOf(pods: readonly WaitingPod[]): Waiting {
  const sorted = [...pods].sort((one, other) => other.ageMs - one.ageMs || (one.name < other.name ? -1 : 1));
  return { count: pods.length, oldest: sorted.slice(0, MOST_SHOWN) };
}

/**
 * Returns the note of the newest Event and when it was true, because a note may say how long something takes; undefined if there is
 * none. `events`: archaware's Events about one pod.
 */
export function newestNote(events: readonly JsonObject[]): string | undefined {
  const [newest] = [...events].sort((one, other) => eventTime(other) - eventTime(one));
  const note = newest && stringAt(newest, 'note');
  if (newest === undefined || !note) return undefined;
  return `${strangersText(`${stringAt(newest, 'reason')}: ${note}`)} (said at ${utcTime(eventTime(newest))})`;
}
