/** What the controller has said in its Events about an object. */

import type { ExplainInput } from '../../analysis/explain/input.ts';
import type { Clock } from '../../kit/clock.ts';
import { strangersText } from '../../kit/cut.ts';
import { utcTime } from '../../kit/duration.ts';
import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import { printable } from '../../kit/printable.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError } from '../../kube/errors.ts';
import { type EventReason, NOTE_BYTES } from '../../names.ts';
import type { Workload } from '../../placement/objects/workload.ts';
import { readStartsAtLatest } from '../../placement/reasons.ts';
import { eventTime, ownEvents } from '../survey/survey.ts';

const UNRESOLVABLE: EventReason = 'ImageUnresolvable';

/**
 * Returns what the controller's Events say of a pod whose images it does not know: the newest one, such as the place in a registry's
 * line, and when the pod starts at the latest. Only the controller knows either. Nothing for a pod with a node, if there is no such
 * Event, or if Events cannot be listed.
 */
export async function saidOf(
  client: ApiClient | undefined,
  { pod }: Pick<Workload, 'pod'>,
  clock: Pick<Clock, 'wall'>,
  signal: AbortSignal,
): Promise<Pick<ExplainInput, 'patience' | 'said'>> {
  if (client === undefined || pod === undefined || pod.nodeName !== undefined) return {};
  const isOfPod = (event: JsonObject) => stringAt(objectAt(event, 'regarding'), 'uid') === pod.uid;
  try {
    const fields = `regarding.name=${pod.name},reason=${UNRESOLVABLE}`;
    const found = newestFirst(await ownEvents(client, pod.namespace, fields, signal, isOfPod));
    const [newest] = found;
    if (newest === undefined) return {};
    // A later failure, or another leader, wrote a later time.
    const startsAtLatestMs = timeIn(found);
    return {
      said: { note: noteOf(newest), at: utcTime(eventTime(newest)) },
      patience: startsAtLatestMs === undefined ? undefined : { startsAtLatestMs, nowMs: clock.wall() },
    };
  } catch (error) {
    // The Events are a help: an explanation without them is better than none.
    if (error instanceof ApiError) return {};
    throw error;
  }
}

function newestFirst(events: readonly JsonObject[]): JsonObject[] {
  return [...events].sort((one, other) => eventTime(other) - eventTime(one));
}

function noteOf(event: JsonObject): string {
  return printable(stringAt(event, 'note') ?? '', NOTE_BYTES);
}

/** Returns the time in the first of these Events that has one. */
function timeIn(events: readonly JsonObject[]): number | undefined {
  for (const event of events) {
    const writtenMs = Date.parse(stringAt(event, 'eventTime') ?? '');
    const atMs = readStartsAtLatest(strangersText(stringAt(event, 'note') ?? ''), writtenMs);
    if (atMs !== undefined) return atMs;
  }
  return undefined;
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
    const [newest] = newestFirst(found.flat());
    if (newest === undefined) return undefined;
    const reason = REFUSALS.find((each) => each === stringAt(newest, 'reason')) ?? 'WriteRefused';
    return { reason, note: noteOf(newest) };
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
