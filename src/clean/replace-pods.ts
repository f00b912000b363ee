import { each } from '../kit/fairness/each.ts';
import { numberAt, objectAt } from '../kit/json.ts';
import { printable } from '../kit/printable.ts';
import { find } from '../kube/read.ts';
import { pathOf } from '../kube/writer.ts';
import { nextOfTurn } from '../placement/clean/owner-turns.ts';
import { readDaemonSet } from '../placement/objects/daemonset.ts';
import { type Owner, readPod } from '../placement/objects/pod.ts';
import type { Ledger } from './outcomes.ts';
import { lookAtOwners, type OwnerQuery, type OwnerState } from './owner-pods.ts';
import { type RemoveOptions, removePod } from './remove-pod.ts';
import type { CarryingPod } from './traces.ts';

export type ReplaceOptions = RemoveOptions & {
  readonly ledger: Ledger;
  /** How long the work may go without progress before the rest is left. */
  readonly timeoutMs: number;
  readonly onProgress: (line: string) => void;
};

const OWNERS = 10;
/** The interval between two reads of the remaining pods; longer if a read takes long. */
const ROUND_MS = 1_000;
const LOOKS_SHARE = 4;
const IN_FLIGHT = 8;
/** How often it is said whom the work waits for. */
const SAY_MS = 10_000;

type Group = OwnerQuery & {
  pods: CarryingPod[];
  /** Whether a pod was removed and its successor is not ready yet. */
  waits: boolean;
  /** How many pods were ready when last seen. */
  ready: number;
  /** What the owner waits for, in words; undefined if it does not wait. */
  waitsFor: string | undefined;
};

/** A DaemonSet that replaces its pods by itself. */
type Rolling = {
  readonly namespace: string;
  readonly name: string;
  readonly pods: CarryingPod[];
  /** Its progress in words; it changes with each step. */
  state: string;
};

type Work = ReplaceOptions & {
  /** The owners that have a turn, and those that wait for one. */
  active: Group[];
  queue: Group[];
  rolling: Rolling[];
  /** When there was progress last, by the monotonic clock. */
  moved: number;
};

/**
 * Replaces pods so that no workload goes down. Pods without a node are removed at once, others one pod of an owner at a time
 * ({@link nextOfTurn}). A DaemonSet whose template was restored replaces its own pods. Ends when all are gone or left, or after
 * `timeoutMs` without progress. The ledger records the result for each pod. `pods`: those found before; later pods have no
 * tolerations of archaware.
 */
export async function replacePods(options: ReplaceOptions, pods: readonly CarryingPod[]): Promise<void> {
  const { clock, ledger, signal, timeoutMs, onProgress } = options;
  const work: Work = {
    ...options,
    active: [],
    queue: groupsOf(pods.filter(({ cleaning }) => cleaning.kind === 'replace')),
    rolling: rollingOf(pods.filter(({ cleaning }) => cleaning.kind === 'rolls')),
    moved: clock.monotonic(),
  };
  for (const pod of pods) ledger.left('pods', pod, firstReason(pod));
  const say = createReports(work);
  say();
  await removeUnbound(work);
  for (;;) {
    const began = clock.monotonic();
    await takeRound(work);
    say();
    if (work.rolling.length + work.queue.length + work.active.length === 0) return;
    if (clock.monotonic() - work.moved >= timeoutMs) {
      const waiting = waitingOf(work);
      if (waiting.length > 0) onProgress(gaveUpLine(waiting, timeoutMs));
      return;
    }
    await clock.delay(Math.max(ROUND_MS, LOOKS_SHARE * (clock.monotonic() - began)), signal);
    signal.throwIfAborted();
  }
}

/**
 * Returns a function that reports how many pods were replaced, when that has changed, and from time to time the owners that the work
 * waits for.
 */
function createReports(work: Work): () => void {
  const { clock, ledger, timeoutMs, onProgress } = work;
  let counted = '';
  let said = clock.monotonic();
  return () => {
    const { removed, remaining } = ledger.count('pods');
    const line = `pods: ${removed} of ${removed + remaining} replaced`;
    if (line !== counted) onProgress(line);
    counted = line;
    const waiting = waitingOf(work);
    const now = clock.monotonic();
    if (waiting.length === 0 || now - said < SAY_MS) return;
    onProgress(waitingLine(waiting, work.moved + timeoutMs - now));
    said = now;
  };
}

async function takeRound(work: Work): Promise<void> {
  await lookAtDaemonSets(work);
  // An owner that a disruption budget stops makes room for the next one, and is tried again later.
  work.active.push(...work.queue.splice(0, OWNERS - work.active.length));
  const states = await lookAtOwners(work.client, work.active, work.signal);
  await Promise.all(work.active.map((group) => takeTurn(work, group, states.get(group.owner.uid))));
}

/** Returns the reason why a pod is left as long as nothing else is known. */
function firstReason({ cleaning }: CarryingPod): string {
  switch (cleaning.kind) {
    case 'leave':
    case 'keep':
      return cleaning.reason;
    case 'rolls':
      return 'its DaemonSet has not replaced it yet';
    case 'replace':
      return 'its turn did not come before the timeout';
    default:
      return cleaning satisfies never;
  }
}

async function takeTurn(work: Work, group: Group, state: OwnerState | undefined): Promise<void> {
  if (state === undefined) return;
  const { pods, wanted } = state;
  for (const pod of group.pods.filter(({ uid }) => !pods.has(uid))) recordGone(work, pod);
  group.pods = group.pods.filter(({ uid }) => pods.has(uid));
  if (typeof wanted === 'object') {
    leave(work, group, wanted.reason);
    return;
  }
  const turn = { pods: group.pods.map(({ uid }) => uid), wanted, waits: group.waits };
  const next = nextOfTurn(turn, pods);
  switch (next.kind) {
    case 'over':
      endTurn(work, group);
      return;
    case 'wait': {
      if (next.ready > group.ready) work.moved = work.clock.monotonic();
      group.ready = next.ready;
      group.waitsFor = `${next.ready} of ${next.wanted} ready`;
      const reason = `its ${group.owner.kind} has ${next.ready} of ${next.wanted} pods ready: the next one was not replaced`;
      for (const pod of group.pods) work.ledger.left('pods', pod, reason);
      return;
    }
    case 'below':
      leave(
        work,
        group,
        `its ${group.owner.kind} has only ${next.ready} of ${next.wanted} pods ready, so none was replaced`,
      );
      return;
    case 'remove': {
      if (group.waits) work.moved = work.clock.monotonic();
      group.waits = false;
      group.waitsFor = undefined;
      const pod = group.pods.find(({ uid }) => uid === next.uid);
      if (pod !== undefined) await remove(work, group, pod, pods);
      return;
    }
    default:
      next satisfies never;
  }
}

async function remove(work: Work, group: Group, pod: CarryingPod, seen: OwnerState['pods']): Promise<void> {
  const obstacle = await removePod(work, pod);
  if (obstacle === undefined) {
    group.waits = true;
    group.ready = [...seen].filter(([uid, ready]) => ready && uid !== pod.uid).length;
    group.waitsFor = 'a pod of it ends';
    return;
  }
  work.ledger.left('pods', pod, obstacle.reason);
  endTurn(work, group);
  group.waitsFor = obstacle.reason;
  group.pods = [...group.pods.filter(({ uid }) => uid !== pod.uid), ...(obstacle.final ? [] : [pod])];
  if (group.pods.length > 0) work.queue.push(group);
}

function leave(work: Work, group: Group, reason: string): void {
  for (const pod of group.pods) work.ledger.left('pods', pod, reason);
  endTurn(work, group);
}

function endTurn(work: Work, group: Group): void {
  work.active = work.active.filter((other) => other !== group);
}

function recordGone(work: Work, pod: CarryingPod): void {
  work.ledger.removed('pods', pod);
  work.moved = work.clock.monotonic();
}

/** Removes the pods that have no node yet. That costs no capacity, so they do not wait for their owner's turn. */
async function removeUnbound(work: Work): Promise<void> {
  const { client, signal } = work;
  const unbound = work.queue.flatMap((group) =>
    group.pods.filter(({ bound }) => !bound).map((pod) => ({ group, pod })),
  );
  await each(unbound, IN_FLIGHT, async ({ group, pod }) => {
    // The pod may have been bound meanwhile.
    const now = await find(client, pathOf(pod), signal);
    const current = now === undefined ? undefined : readPod(now);
    const there = current?.uid === pod.uid && !current.deleting;
    if (there && current.nodeName !== undefined) return;
    // A pod that could not be removed is tried again in its owner's turn.
    if (there && (await removePod(work, pod)) !== undefined) return;
    // The turn waits for the successor, instead of leaving an owner that lacks it.
    group.waits = true;
    group.pods = group.pods.filter((other) => other !== pod);
    recordGone(work, pod);
  });
}

/** Looks at the DaemonSets that roll. The pods that one has left over get a turn. */
async function lookAtDaemonSets(work: Work): Promise<void> {
  for (const set of work.rolling) {
    const state = await progressOf(work, set);
    if (state !== set.state) work.moved = work.clock.monotonic();
    set.state = state ?? '';
    if (state !== undefined) continue;
    work.rolling = work.rolling.filter((other) => other !== set);
    work.queue.push(...groupsOf(set.pods));
  }
}

/** Returns the progress of a DaemonSet's rollout as text; undefined if it replaces no further pods by itself. */
async function progressOf({ client, signal }: Work, set: Rolling): Promise<string | undefined> {
  const object = await find(client, pathOf({ kind: 'DaemonSet', ...set }), signal);
  if (object === undefined || readDaemonSet(object).rolledOut) return undefined;
  const status = objectAt(object, 'status');
  const count = (field: string) => numberAt(status, field) ?? 0;
  return `${count('updatedNumberScheduled')} of ${count('desiredNumberScheduled')} updated, ${count('numberAvailable')} available`;
}

function waitingOf({ active, queue, rolling }: Work): Waiting[] {
  return [
    ...[...active, ...queue].flatMap(({ namespace, owner: { kind, name }, waitsFor }) =>
      waitsFor === undefined ? [] : { kind, namespace, name, what: waitsFor },
    ),
    ...rolling.map(({ namespace, name, state }) => ({ kind: 'DaemonSet', namespace, name, what: state })),
  ];
}

/** Groups pods by their owners. A pod without one is not replaced. */
function groupsOf(pods: readonly CarryingPod[]): Group[] {
  const groups = new Map<string, Group>();
  for (const pod of pods) {
    if (pod.owner === undefined) continue;
    const group = groups.get(pod.owner.uid) ?? groupOf(pod, pod.owner);
    group.pods.push(pod);
    groups.set(pod.owner.uid, group);
  }
  return [...groups.values()];
}

function groupOf({ namespace, templateHash }: CarryingPod, owner: Owner): Group {
  return {
    namespace,
    owner,
    templateHash: owner.kind === 'ReplicaSet' ? templateHash : undefined,
    pods: [],
    waits: false,
    ready: 0,
    waitsFor: undefined,
  };
}

function rollingOf(pods: readonly CarryingPod[]): Rolling[] {
  const sets = new Map<string, Rolling>();
  for (const pod of pods) {
    if (pod.owner === undefined) continue;
    const { namespace, owner } = pod;
    const set = sets.get(owner.uid) ?? { namespace, name: owner.name, pods: [], state: '' };
    set.pods.push(pod);
    sets.set(owner.uid, set);
  }
  return [...sets.values()];
}

/** An owner that `clean` waits for, and what is missing. */
type Waiting = {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly what: string;
};

const MOST_NAMED = 3;
/** A long name of an object, and the reason why a pod of it stays. */
const MOST_BYTES = 400;

/** Returns the line about the owners that `clean` waits for, and until when. `leftMs`: the time until then without progress. */
function waitingLine(waiting: readonly Waiting[], leftMs: number): string {
  return `waiting for ${namesText(waiting)}, ${timeText(leftMs)} left`;
}

/** Returns the line that names the owners that `clean` no longer waits for. */
function gaveUpLine(waiting: readonly Waiting[], timeoutMs: number): string {
  return `gave up after ${timeText(timeoutMs)} without progress: ${namesText(waiting)}`;
}

function namesText(waiting: readonly Waiting[]): string {
  const named = waiting
    .slice(0, MOST_NAMED)
    .map(({ kind, namespace, name, what }) => printable(`${kind} ${namespace}/${name}: ${what}`, MOST_BYTES));
  const others = waiting.length - named.length;
  const more = others > 0 ? [`and ${others} more`] : [];
  return [...named, ...more].join('; ');
}

function timeText(ms: number): string {
  return ms < 60_000 ? `${Math.max(0, Math.ceil(ms / 1000))} s` : `${Math.floor(ms / 60_000)} min`;
}
