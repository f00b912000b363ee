import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import { printable } from '../../kit/printable.ts';
import type { ApiClient } from '../../kube/client.ts';
import { ApiError } from '../../kube/errors.ts';
import { type EventReason, NOTE_BYTES } from '../../names.ts';
import type { ExplainInput } from '../../placement/explain/input.ts';
import type { Workload } from '../../placement/objects/workload.ts';
import { eventTime, ownEvents } from '../events.ts';

const REASONS: readonly EventReason[] = ['WriteRefused', 'RefusedByPolicy'];

/**
 * Returns what the API server refuses for an object of the cluster: the newest of the controller's Events about it, about the owner
 * of the pod, or about what a Deployment or CronJob creates. Undefined if there is none, and if Events cannot be listed.
 */
export async function refusalOf(
  client: ApiClient,
  { kind, name, pod }: Workload,
  namespace: string,
  signal: AbortSignal,
): Promise<ExplainInput['refusal']> {
  const own = (regarding: JsonObject): boolean => {
    const [of, called = '', uid] = ['kind', 'name', 'uid'].map((field) => stringAt(regarding, field));
    if (of === kind && called === name) return pod === undefined || pod.uid === uid;
    if (pod !== undefined) return of === pod.owner?.kind && called === pod.owner?.name;
    return isChild(kind, name, of, called);
  };
  try {
    const isAbout = (event: JsonObject) => own(objectAt(event, 'regarding'));
    const found = await Promise.all(
      REASONS.map((reason) => ownEvents(client, namespace, `reason=${reason}`, signal, isAbout)),
    );
    const [newest] = found.flat().sort((one, other) => eventTime(other) - eventTime(one));
    if (newest === undefined) return undefined;
    const reason = REASONS.find((each) => each === stringAt(newest, 'reason')) ?? 'WriteRefused';
    return { reason, note: printable(stringAt(newest, 'note') ?? '', NOTE_BYTES) };
  } catch (error) {
    // The Event is a help: an explanation without it is better than none.
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** Whether an object is one that a Deployment or a CronJob creates: their names begin with its name. */
function isChild(kind: string, name: string, of: string | undefined, called: string): boolean {
  const child = kind === 'Deployment' ? 'ReplicaSet' : kind === 'CronJob' ? 'Job' : undefined;
  return of === child && called.startsWith(`${name}-`) && !called.slice(name.length + 1).includes('-');
}
