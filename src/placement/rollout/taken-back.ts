import { type DaemonSet, readRecord } from '../objects/daemonset.ts';
import { rolloutOf } from '../objects/rollout-record.ts';
import { few } from '../reasons.ts';

/** Whether archaware has taken its change of the template back, and nobody has changed the DaemonSet since. */
export function isTakenBack({ recorded, generation }: Pick<DaemonSet, 'recorded' | 'generation'>): boolean {
  return rolloutOf(readRecord(recorded).basis?.rollout, generation) === 'taken-back';
}

/** Returns the note about DaemonSets whose change was taken back; undefined if there are none. */
export function takenBackNote(
  daemonSets: Iterable<Pick<DaemonSet, 'namespace' | 'name' | 'recorded' | 'generation'>>,
): string | undefined {
  const names = [...daemonSets].flatMap((daemonSet) =>
    isTakenBack(daemonSet) ? `${daemonSet.namespace}/${daemonSet.name}` : [],
  );
  if (names.length === 0) return undefined;
  const what = names.length === 1 ? '1 DaemonSet stays' : `${names.length} DaemonSets stay`;
  return (
    `${what} without tolerations of archaware, which holds up others: the API server let no pod with them in, so run has taken ` +
    `them back (${few(names.sort())}); allow the tolerations, then run kubectl rollout restart (docs/alerts.md, "ArchawareRolloutStopped")`
  );
}
