import type { Clock } from '../../kit/clock.ts';
import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/client.ts';
import { ApiError } from '../../kube/errors.ts';
import type { EventReason } from '../../names.ts';
import type { ExplainInput } from '../../placement/explain/input.ts';
import type { Workload } from '../../placement/objects/workload.ts';
import { readStartsAtLatest } from '../../placement/reasons.ts';
import { ownEvents } from '../events.ts';

const REASON: EventReason = 'ImageUnresolvable';

/**
 * Returns when a pod that waits for an image starts at the latest. Only the controller knows when its first lookup failed; it says
 * so in its Event about the pod. Undefined for a pod with a node, if no Event has the time, and if Events cannot be listed.
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
    const fields = `regarding.name=${pod.name},reason=${REASON}`;
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
      const atMs = readStartsAtLatest(stringAt(event, 'note') ?? '', writtenMs);
      return atMs === undefined ? [] : { writtenMs, atMs };
    })
    .sort((one, other) => other.writtenMs - one.writtenMs);
  return newest?.atMs;
}
