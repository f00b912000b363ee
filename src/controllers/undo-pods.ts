import type { ApiClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import { ApiError, LeaseLostError } from '../kube/errors.ts';
import { BUDGET, evict, TWO_BUDGETS } from '../kube/eviction.ts';
import { listAll } from '../kube/list.ts';
import { type DaemonSet, readDaemonSet } from '../placement/daemonset.ts';
import { type Pod, readPod } from '../placement/pod.ts';
import { type PodUndo, undoPod, undoTemplate } from '../placement/undo.ts';
import type { Inventory, Left } from './undo.ts';
import { reasonOf } from './undo.ts';

export type UndoPodsOptions = {
  readonly client: ApiClient;
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  readonly keys: Inventory['keys'];
  readonly how: 'evict' | 'delete';
  readonly allPods: boolean;
  readonly timeoutMs: number;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
};

/** A pod that carries our tolerations, and what can be done about it. */
export type CarryingPod = { readonly pod: Pod; readonly undo: Exclude<PodUndo, { kind: 'none' }> };

/** Between two evictions, so that the controllers that bring pods back keep up. */
const PACE_MS = 50;
/** Between two looks at the pods that are left. */
const ROUND_MS = 1_000;

/** The pods that carry our tolerations now. */
export async function findPods(
  { client, keys, allPods, signal }: Pick<UndoPodsOptions, 'client' | 'keys' | 'allPods' | 'signal'>,
  templates: 'as they are' | 'as they will be' = 'as they are',
): Promise<CarryingPod[]> {
  const daemonSets = new Map<string, DaemonSet>();
  for (const object of await listAll(client, '/apis/apps/v1/daemonsets', signal)) {
    const daemonSet = readDaemonSet(object);
    daemonSets.set(daemonSet.uid, templates === 'as they are' ? daemonSet : restored(daemonSet));
  }
  const pods = await listAll(client, '/api/v1/pods', signal);
  return pods.flatMap((object) => {
    const undo = undoPod(object, keys, allPods, (uid) => daemonSets.get(uid));
    return undo.kind === 'none' ? [] : [{ pod: readPod(object), undo }];
  });
}

/**
 * Evicts or deletes the pods that are brought back, waits for those that their DaemonSet rolls, and gives how many went
 * and what is left. Only pods of `before` count: later ones were made without us.
 */
export async function replacePods(
  options: UndoPodsOptions,
  before: readonly CarryingPod[],
): Promise<{ removed: number; left: Left[] }> {
  const { clock, signal, timeoutMs } = options;
  const ours = new Set(before.map(({ pod }) => pod.uid));
  const until = clock.monotonic() + timeoutMs;
  const blocked = new Map<string, string>();
  const refused = new Set<string>();
  let said = '';
  for (;;) {
    const remaining = (await findPods(options)).filter(({ pod }) => ours.has(pod.uid));
    const open = remaining.filter(({ pod, undo }) => undo.kind !== 'leave' && !refused.has(pod.uid));
    const removed = ours.size - remaining.length;
    if (open.length === 0 || clock.monotonic() >= until) {
      return { removed, left: remaining.map((entry) => describe(entry, blocked.get(entry.pod.uid))) };
    }
    const progress = `pods: ${removed} of ${removed + open.length} replaced`;
    if (progress !== said) options.onProgress(progress);
    said = progress;
    for (const { pod, undo } of open) {
      if (undo.kind !== 'replace' || clock.monotonic() >= until) continue;
      const obstacle = await remove(options, pod);
      if (obstacle === undefined) blocked.delete(pod.uid);
      else blocked.set(pod.uid, obstacle.reason);
      if (obstacle?.final) refused.add(pod.uid);
      await clock.delay(PACE_MS, signal);
      signal.throwIfAborted();
    }
    await clock.delay(ROUND_MS, signal);
    signal.throwIfAborted();
  }
}

/** The DaemonSet as it will be when its template has been restored and it has not rolled yet. */
function restored(daemonSet: DaemonSet): DaemonSet {
  const decision = undoTemplate(daemonSet);
  if (decision.kind === 'settled') return daemonSet;
  return { ...daemonSet, settled: false, template: { ...daemonSet.template, tolerations: decision.tolerations } };
}

/** What keeps a pod from going, and whether trying again is of no use. */
type Obstacle = { readonly reason: string; readonly final: boolean };

/** Removes one pod; says what blocks it. The uid keeps a pod of the same name, made meanwhile, out of it. */
async function remove(options: UndoPodsOptions, { namespace, name, uid }: Pod): Promise<Obstacle | undefined> {
  const { client, how, signal } = options;
  if (!options.mayWrite()) throw new LeaseLostError('the lease was lost; run clean again');
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  const preconditions = { uid };
  try {
    if (how === 'delete') await client.request('delete', path, { body: { preconditions }, signal });
    else await evict(client, { namespace, name, uid }, signal);
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) return { reason: reasonOf(error, signal), final: false };
    if (error.status === 404 || error.status === 409) return undefined;
    if (error.status === 429) return { reason: BUDGET, final: false };
    if (error.status === 500) return { reason: `${TWO_BUDGETS}: ${error.message}`, final: false };
    if (error.status === 401 || error.status === 403) {
      return { reason: `these credentials may not ${how} it; run clean as an administrator`, final: true };
    }
    return { reason: reasonOf(error, signal), final: error.status === 400 || error.status === 422 };
  }
}

function describe({ pod, undo }: CarryingPod, blocked: string | undefined): Left {
  const { namespace, name } = pod;
  switch (undo.kind) {
    case 'leave':
      return { kind: 'Pod', namespace, name, reason: undo.reason };
    case 'rolls':
      return { kind: 'Pod', namespace, name, reason: 'its DaemonSet has not replaced it yet' };
    case 'replace':
      return { kind: 'Pod', namespace, name, reason: blocked ?? 'not gone in time' };
    default:
      return undo satisfies never;
  }
}
