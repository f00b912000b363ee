import { numberAt, objectAt } from '../kit/json.ts';
import { find } from '../kube/read.ts';
import { pathOf } from '../kube/writer.ts';
import { whyNotBroughtBack } from '../placement/clean/pods.ts';
import { nextOfTurn, readyOf } from '../placement/clean/turns.ts';
import { type DaemonSet, readDaemonSet } from '../placement/objects/daemonset.ts';
import { readPod } from '../placement/objects/pod.ts';
import type { CarryingPod } from './inventory.ts';
import type { Ledger } from './ledger.ts';
import { type OwnerQuery, podsOfOwners } from './owner-pods.ts';
import { type RemoveOptions, removePod } from './remove-pod.ts';

export type ReplaceOptions = RemoveOptions & {
  readonly ledger: Ledger;
  /** How long the work may go without progress before the rest is left. */
  readonly timeoutMs: number;
  readonly onProgress: (line: string) => void;
};

/** How many owners have a turn at the same time. */
const OWNERS = 10;
/** The interval between two reads of the remaining pods; longer if a read takes long. */
const ROUND_MS = 1_000;
const LOOKS_SHARE = 4;
const IN_FLIGHT = 8;

/** The pods of one owner to remove, and its turn once it has begun. */
type Group = OwnerQuery & {
  readonly kind: string;
  pods: CarryingPod[];
  /** The number of ready pods to wait for; undefined before the turn. There is no wait for pods that no owner creates again. */
  target: number | undefined;
  /** Whether a pod was removed and its replacement is not ready yet. */
  waits: boolean;
};

/** A DaemonSet that replaces its pods by itself. */
type Rolling = { readonly namespace: string; readonly name: string; readonly pods: CarryingPod[]; state: string };

/**
 * Replaces pods so that no workload goes down. Pods without a node are removed at once, others one pod of an owner at a time
 * ({@link nextOfTurn}). A DaemonSet whose template was restored replaces its own pods. Ends when all are gone, or after `timeoutMs`
 * without progress. The ledger records the result for each pod. `pods`: those found before; later pods have no tolerations of
 * archaware.
 */
export async function replacePods(options: ReplaceOptions, pods: readonly CarryingPod[]): Promise<void> {
  const { clock, ledger, signal, timeoutMs, onProgress } = options;
  const queue = groupsOf(pods.filter(({ cleaning }) => cleaning.kind === 'replace'));
  const rolling = rollingOf(pods.filter(({ cleaning }) => cleaning.kind === 'rolls'));
  const active: Group[] = [];
  let moved = clock.monotonic();
  let said = '';
  const gone = (pod: CarryingPod) => {
    ledger.removed('pods', pod);
    moved = clock.monotonic();
  };
  const blocked = (pod: CarryingPod, reason: string) => ledger.left('pods', pod, reason);
  const reportProgress = () => {
    const { removed, remaining } = ledger.count('pods');
    const line = `pods: ${removed} of ${removed + remaining} replaced`;
    if (line !== said) onProgress(line);
    said = line;
  };

  for (const pod of pods) {
    if (pod.cleaning.kind === 'leave') blocked(pod, pod.cleaning.reason);
    else
      blocked(
        pod,
        pod.cleaning.kind === 'rolls'
          ? 'its DaemonSet has not replaced it yet'
          : 'its turn did not come before the timeout',
      );
  }
  reportProgress();
  await removeUnbound(options, queue, gone);
  for (;;) {
    const began = clock.monotonic();
    for (const set of [...rolling]) {
      const state = await lookAtDaemonSet(options, set);
      if (state !== set.state) moved = clock.monotonic();
      set.state = state;
      if (state !== 'over') continue;
      rolling.splice(rolling.indexOf(set), 1);
      queue.push(...groupsOf(set.pods));
    }
    // An owner that a disruption budget stops makes room for the next one, and is tried again later.
    while (active.length < OWNERS && queue.length > 0) active.push(...queue.splice(0, 1));
    const seen = await podsOfOwners(options.client, active, signal);
    await Promise.all(
      [...active].map(async (group) => {
        const now = seen.get(group.key) ?? new Map<string, boolean>();
        for (const pod of group.pods.filter(({ uid }) => !now.has(uid))) gone(pod);
        group.pods = group.pods.filter(({ uid }) => now.has(uid));
        group.target ??=
          whyNotBroughtBack(ownerOf(group)) === undefined || group.kind === 'DaemonSet' ? readyOf(now) : 0;
        const next = nextOfTurn({ pods: group.pods.map(({ uid }) => uid), target: group.target }, now);
        if (next.kind === 'wait') {
          const reason = `${group.kind} has ${next.ready} of ${group.target} pods ready: the next one was not replaced`;
          for (const pod of group.pods) blocked(pod, reason);
          return;
        }
        if (group.waits) moved = clock.monotonic();
        group.waits = false;
        const pod = next.kind === 'remove' ? group.pods.find(({ uid }) => uid === next.uid) : undefined;
        if (pod === undefined) {
          active.splice(active.indexOf(group), 1);
          return;
        }
        const obstacle = await removePod(options, pod);
        if (obstacle === undefined) {
          group.waits = true;
          return;
        }
        blocked(pod, obstacle.reason);
        active.splice(active.indexOf(group), 1);
        group.target = undefined;
        group.pods = [...group.pods.filter(({ uid }) => uid !== pod.uid), ...(obstacle.final ? [] : [pod])];
        if (group.pods.length > 0) queue.push(group);
      }),
    );
    reportProgress();
    const open = rolling.length + queue.length + active.filter((group) => group.pods.length > 0).length;
    if (open === 0 || clock.monotonic() - moved >= timeoutMs) return;
    await clock.delay(Math.max(ROUND_MS, LOOKS_SHARE * (clock.monotonic() - began)), signal);
    signal.throwIfAborted();
  }
}

/** Removes the pods that have no node yet. That costs no capacity, so they do not wait for their owner's turn. */
async function removeUnbound(
  options: ReplaceOptions,
  groups: readonly Group[],
  gone: (pod: CarryingPod) => void,
): Promise<void> {
  const { client, signal } = options;
  const queue = groups
    .flatMap((group) => group.pods.filter(({ bound }) => !bound).map((pod) => ({ group, pod })))
    .values();
  const work = async () => {
    for (const { group, pod } of queue) {
      // The pod may have been bound meanwhile.
      const now = await find(client, pathOf(pod), signal);
      const current = now === undefined ? undefined : readPod(now);
      const there = current?.uid === pod.uid && !current.deleting;
      if (there && current.nodeName !== undefined) continue;
      // A pod that could not be removed is tried again in its owner's turn.
      if (there && (await removePod(options, pod)) !== undefined) continue;
      group.pods = group.pods.filter((other) => other !== pod);
      gone(pod);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
}

/** Returns the progress of a DaemonSet's rollout as text; `over` if it replaces no further pods by itself. */
async function lookAtDaemonSet({ client, signal }: ReplaceOptions, set: Rolling): Promise<string> {
  const object = await find(client, pathOf({ kind: 'DaemonSet', ...set }), signal);
  if (object === undefined) return 'over';
  const daemonSet: DaemonSet = readDaemonSet(object);
  if (daemonSet.rolledOut) return 'over';
  const status = objectAt(object, 'status');
  return JSON.stringify([numberAt(status, 'updatedNumberScheduled'), numberAt(status, 'numberAvailable')]);
}

function groupsOf(pods: readonly CarryingPod[]): Group[] {
  const groups = new Map<string, Group>();
  for (const pod of pods) {
    const key = pod.owner?.uid ?? pod.uid;
    const { namespace, owner } = pod;
    const templateHash = owner?.kind === 'ReplicaSet' ? pod.templateHash : undefined;
    const group = groups.get(key) ?? {
      key,
      namespace,
      templateHash,
      kind: owner?.kind ?? '',
      pods: [],
      target: undefined,
      waits: false,
    };
    group.pods.push(pod);
    groups.set(key, group);
  }
  return [...groups.values()];
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

function ownerOf({ kind, key }: Group) {
  return kind === '' ? undefined : { kind, apiVersion: '', name: '', uid: key };
}
