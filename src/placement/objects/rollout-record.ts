import { isObject, parseJson } from '../../kit/json.ts';

/*
 * What the record of a template says of the last rollout that archaware began. It survives the process: a new leader knows which
 * rollouts are archaware's, and does not begin one again that was taken back. The word is followed by the generation that the write
 * led to; with any other generation, the author has changed the DaemonSet since, and the entry means nothing.
 */

/** Returns the entry for a rollout that archaware waits for: the DaemonSet had rolled out before. */
export function awaited(generation: number): string {
  return `awaited ${generation}`;
}

/** Returns the entry for a change that archaware has taken back. */
export function takenBack(generation: number): string {
  return `back ${generation}`;
}

/** Returns a record with another entry for the rollout; undefined: none. A record of a version before 0.2 has no room for one. */
export function withRollout(recorded: string | undefined, rollout: string | undefined): string | undefined {
  const record = recorded === undefined ? undefined : parseJson(recorded);
  if (!isObject(record)) return recorded;
  const { rollout: _, tolerations, ...rest } = record;
  // A field that is undefined is left out. The policies of the manifests expect this order.
  return JSON.stringify({ ...rest, rollout, tolerations });
}

/** Whether a record is kept although it lists no toleration. */
export function keepsRecord(rollout: string | undefined): boolean {
  return rollout?.startsWith('back ') === true;
}

/** Returns what the entry says of a DaemonSet with this generation. */
export function rolloutOf(rollout: string | undefined, generation: number): 'awaited' | 'taken-back' | undefined {
  if (rollout === awaited(generation)) return 'awaited';
  return rollout === takenBack(generation) ? 'taken-back' : undefined;
}
