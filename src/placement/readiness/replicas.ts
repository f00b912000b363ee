import { type JsonObject, listAt, numberAt, objectAt } from '../../kit/json.ts';

/**
 * Returns how many pods an object wants at the moment; undefined for a Job that has finished, which is left out.
 *
 * A DaemonSet wants `status.desiredNumberScheduled`; in a file it has no status, and counts as one pod. A CronJob counts as the
 * pods of one run, also between its runs: another number would change from minute to minute, and 0 would hide it. What is
 * suspended wants no pod.
 */
export function wantedReplicas(kind: string, object: JsonObject): number | undefined {
  const spec = objectAt(object, 'spec');
  const status = objectAt(object, 'status');
  switch (kind) {
    case 'Pod':
      return 1;
    case 'DaemonSet':
      return numberAt(status, 'desiredNumberScheduled') ?? 1;
    case 'Job':
      return hasFinished(status) ? undefined : podsOfRun(spec, numberAt(status, 'succeeded') ?? 0);
    case 'CronJob':
      return spec.suspend === true ? 0 : podsOfRun(objectAt(objectAt(spec, 'jobTemplate'), 'spec'), 0);
    default:
      return numberAt(spec, 'replicas') ?? 1;
  }
}

function podsOfRun(spec: JsonObject, succeeded: number): number {
  if (spec.suspend === true) return 0;
  const left = (numberAt(spec, 'completions') ?? Number.POSITIVE_INFINITY) - succeeded;
  return Math.max(0, Math.min(numberAt(spec, 'parallelism') ?? 1, left));
}

function hasFinished(status: JsonObject): boolean {
  return (listAt(status, 'conditions') ?? []).some(
    ({ type, status: state }) => (type === 'Complete' || type === 'Failed') && state === 'True',
  );
}
