/** What the controller has said in its Events about an object. */

import type { Clock } from '../../kit/clock.ts';
import { strangersText } from '../../kit/cut.ts';
import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import { printable } from '../../kit/printable.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError } from '../../kube/errors.ts';
import { type EventReason, NOTE_BYTES } from '../../names.ts';
import type { ExplainInput } from '../../placement/explain/input.ts';
import type { Workload } from '../../placement/objects/workload.ts';
import { readStartsAtLatest } from '../../placement/reasons.ts';
import { eventTime, ownEvents } from '../event-time.ts';

const UNRESOLVABLE: EventReason = 'ImageUnresolvable';

/**
 * Returns when a pod that waits for an image starts at the latest. Only the controller knows when its first lookup failed; it says
 * so in its Event about the pod. Undefined for a pod with a node, if no Event has the time, or if Events cannot be listed.
 */
export async function patienceOf(
  client: ApiClient | undefined,
  { pod }: Pick<Workload, 'pod'>,
  clock: Pick<Clock, 'wall'>,
  signal: AbortSignal,
): Promise<ExplainInput['patience']> {
  if (client === undefined || pod === undefined || pod.nodeName !== undefined) return undefined;
  const isOfPod = (event: JsonObject) => stringAt(objectAt(event, 'regarding'), 'uid') === pod.uid;
  try {
    const fields = `regarding.name=${pod.name},reason=${UNRESOLVABLE}`;
    const found = await ownEvents(client, pod.namespace, fields, signal, isOfPod);
    const startsAtLatestMs = newestTime(found);
    return startsAtLatestMs === undefined ? undefined : { startsAtLatestMs, nowMs: clock.wall() };
  } catch (error) {
    // The time is a help: an explanation without it is better than none.
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** Returns the time in the newest of these Events that has one: a later failure, or another leader, wrote a later time. */
function newestTime(events: readonly JsonObject[]): number | undefined {
  const [newest] = events
    .flatMap((event) => {
      const writtenMs = Date.parse(stringAt(event, 'eventTime') ?? '');
      const atMs = readStartsAtLatest(strangersText(stringAt(event, 'note') ?? ''), writtenMs);
      return atMs === undefined ? [] : { writtenMs, atMs };
    })
    .sort((one, other) => other.writtenMs - one.writtenMs);
  return newest?.atMs;
}

const REFUSALS: readonly EventReason[] = ['WriteRefused', 'RefusedByPolicy'];

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
      REFUSALS.map((reason) => ownEvents(client, namespace, `reason=${reason}`, signal, isAbout)),
    );
    const [newest] = found.flat().sort((one, other) => eventTime(other) - eventTime(one));
    if (newest === undefined) return undefined;
    const reason = REFUSALS.find((each) => each === stringAt(newest, 'reason')) ?? 'WriteRefused';
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
