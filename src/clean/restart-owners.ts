import type { Clock } from '../kit/clock.ts';
import { type JsonObject, objectAt } from '../kit/json.ts';
import { printable } from '../kit/printable.ts';
import { ApiError, isConflict, LeaseLostError } from '../kube/errors.ts';
import { find } from '../kube/read.ts';
import { isOfKubernetes, type Owner, readOwner } from '../placement/objects/kinds.ts';
import type { StepOptions } from './object-steps.ts';
import { type OwnerRollout, RESTARTED_ANNOTATION, type RolledKind, readOwnerRollout } from './owner-rollout.ts';
import type { CarryingPod } from './traces.ts';

/** `client` tries failed requests again. */
export type RestartOptions = Pick<StepOptions, 'client' | 'mayWrite' | 'ledger' | 'signal'> & {
  readonly clock: Clock;
  readonly say: (line: string) => void;
};

/** How many owners are restarted or waited for at once. */
const MOST_AT_ONCE = 10;
/** An owner without progress for this time gives its place to the next one. */
const STALL_MS = 2 * 60_000;
const ROUND_MS = 1_000;
/** How often it is said whom the work waits for. */
const SAY_MS = 10_000;
/** As `kubectl rollout restart` does, so that no field of the template is archaware's. */
const FIELD_MANAGER = 'kubectl-rollout';

const COLLECTIONS = {
  ReplicaSet: 'replicasets',
  Deployment: 'deployments',
  StatefulSet: 'statefulsets',
  DaemonSet: 'daemonsets',
} as const;

/** An owner whose pods are to be replaced. */
type Turn = {
  readonly namespace: string;
  readonly owner: Owner;
  readonly pods: CarryingPod[];
  /** What is restarted or waited for, as `Deployment shop/web`. */
  shown: string;
  /** Whether its pods are being replaced: it was restarted here, or it is a DaemonSet, which does that by itself. */
  isBegun: boolean;
  progress: string;
  /** When there was progress last, by the monotonic clock. */
  movedAt: number;
};

/** What is restarted for an owner, or why nothing is. */
type Rolled = { readonly kind: RolledKind; readonly uid: string; readonly path: string; readonly object: JsonObject };

/** Why the turn of an owner is over. `reason`: undefined if its pods were replaced. */
type End = { readonly reason: string | undefined };

/**
 * Restarts the owners of pods as `kubectl rollout restart` does, a few at a time, and waits for each as `rollout status` does. Owners
 * that were not whole before are left alone. A DaemonSet whose template was restored is only waited for. The ledger gets the reason
 * for the pods of each owner that was not restarted or did not get on; whether a pod is gone, the next reading of the cluster shows.
 */
export async function restartOwners(options: RestartOptions, pods: readonly CarryingPod[]): Promise<void> {
  const { clock, ledger, say, signal } = options;
  const stamp = new Date(clock.wall()).toISOString().replace(/\.\d+/, '');
  const queue = turnsOf(pods);
  const total = queue.length;
  let active: Turn[] = [];
  let said = clock.monotonic();
  let counted = -1;
  for (;;) {
    const joining = queue.splice(0, MOST_AT_ONCE - active.length);
    for (const turn of joining) turn.movedAt = clock.monotonic();
    active.push(...joining);
    const ends = await Promise.all(active.map(async (turn) => ({ turn, end: await take(options, turn, stamp) })));
    for (const { turn, end } of ends) {
      if (end?.reason === undefined) continue;
      for (const pod of turn.pods) ledger.kept('pods', pod, end.reason);
      if (turn.isBegun) say(printable(`gave up waiting for ${turn.shown}: ${end.reason}`, MOST_BYTES));
    }
    active = ends.flatMap(({ turn, end }) => (end === undefined ? turn : []));
    const done = total - queue.length - active.length;
    if (done !== counted) say(`owners of pods: ${done} of ${total} looked after`);
    counted = done;
    if (active.length + queue.length === 0) return;
    if (clock.monotonic() - said >= SAY_MS) {
      say(waitingLine(active, queue.length));
      said = clock.monotonic();
    }
    await clock.delay(ROUND_MS, signal);
    signal.throwIfAborted();
  }
}

/** Takes the next step for an owner. Returns why its turn is over; undefined if it goes on. */
async function take(options: RestartOptions, turn: Turn, stamp: string): Promise<End | undefined> {
  try {
    const rolled = await findRolled(options, turn);
    if ('reason' in rolled) return rolled;
    const now = readOwnerRollout(rolled.kind, rolled.object);
    if (now.uid !== rolled.uid || now.deleting) return { reason: `its ${rolled.kind} was deleted` };
    // The answer to an earlier request may have been lost.
    turn.isBegun ||= now.restartedAt === stamp;
    if (turn.isBegun) return follow(options, turn, rolled.kind, now);
    const notWhole = `its ${rolled.kind} was not whole (${now.progress}), so it was not restarted`;
    const reason = now.obstacle ?? (now.isWhole ? undefined : notWhole);
    if (reason !== undefined) return { reason };
    await restart(options, rolled, now, stamp);
    turn.isBegun = true;
    return undefined;
  } catch (error) {
    // Somebody else has written it: it is judged again.
    if (isConflict(error)) return undefined;
    if (!(error instanceof ApiError)) throw error;
    return { reason: `${error.message}: it was not restarted` };
  }
}

function follow({ clock }: RestartOptions, turn: Turn, kind: RolledKind, now: OwnerRollout): End | undefined {
  if (now.isWhole) return { reason: undefined };
  if (now.progress !== turn.progress) {
    turn.progress = now.progress;
    turn.movedAt = clock.monotonic();
  }
  if (clock.monotonic() - turn.movedAt < STALL_MS) return undefined;
  return { reason: `its ${kind} made no progress for 2 minutes (${now.progress})` };
}

async function restart(
  { client, mayWrite, signal }: RestartOptions,
  { path }: Rolled,
  { resourceVersion }: OwnerRollout,
  stamp: string,
): Promise<void> {
  if (!mayWrite()) throw new LeaseLostError('the lease was lost; run clean again');
  await client.request('patch', `${path}?fieldManager=${FIELD_MANAGER}`, {
    body: {
      metadata: { resourceVersion },
      spec: { template: { metadata: { annotations: { [RESTARTED_ANNOTATION]: stamp } } } },
    },
    signal,
  });
}

/** Reads what is restarted: the owner itself, or the Deployment of a ReplicaSet. */
async function findRolled({ client, signal }: RestartOptions, turn: Turn): Promise<Rolled | { reason: string }> {
  const { namespace, owner } = turn;
  const read = async (kind: keyof typeof COLLECTIONS, name: string) => {
    const path = `/apis/apps/v1/namespaces/${namespace}/${COLLECTIONS[kind]}/${name}`;
    return { path, object: await find(client, path, signal) };
  };
  const kind = owner.kind === 'StatefulSet' || owner.kind === 'DaemonSet' ? owner.kind : 'Deployment';
  let rolled = owner;
  if (kind === 'Deployment') {
    const { object: set } = await read('ReplicaSet', owner.name);
    if (set === undefined) return { reason: 'its ReplicaSet was deleted' };
    const deployment = readOwner(objectAt(set, 'metadata'));
    if (deployment?.kind !== 'Deployment' || !isOfKubernetes(deployment)) {
      return { reason: 'its ReplicaSet has no Deployment, and clean does not restart it' };
    }
    turn.shown = `Deployment ${namespace}/${deployment.name}`;
    rolled = deployment;
  }
  const { path, object } = await read(kind, rolled.name);
  return object === undefined ? { reason: `its ${kind} was deleted` } : { kind, uid: rolled.uid, path, object };
}

function turnsOf(pods: readonly CarryingPod[]): Turn[] {
  const turns = new Map<string, Turn>();
  for (const pod of pods) {
    const { namespace, owner } = pod;
    if (owner === undefined) continue;
    const isBegun = pod.cleaning.kind === 'rolls';
    const shown = `${owner.kind} ${namespace}/${owner.name}`;
    const turn = turns.get(owner.uid) ?? { namespace, owner, pods: [], shown, isBegun, progress: '', movedAt: 0 };
    turn.pods.push(pod);
    turns.set(owner.uid, turn);
  }
  return [...turns.values()];
}

const MOST_NAMED = 3;
const MOST_BYTES = 400;

/** Returns the line about the owners that `clean` waits for. `queued`: how many have no place yet. */
function waitingLine(active: readonly Turn[], queued: number): string {
  const named = active
    .slice(0, MOST_NAMED)
    .map((turn) => printable(`${turn.shown}: ${turn.progress || 'restarts'}`, MOST_BYTES));
  const others = active.length + queued - named.length;
  return `waiting for ${[...named, ...(others > 0 ? [`and ${others} more`] : [])].join('; ')}`;
}
