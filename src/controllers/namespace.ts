import type { Change } from '../kube/reflector.ts';
import type { Namespace } from '../placement/eligibility.ts';

/** Whether a change of a namespace may change what becomes of the pods and DaemonSets in it. */
export function changesPlacement({ now, before }: Change<Namespace>): boolean {
  return now !== undefined && (before === undefined || JSON.stringify(now.labels) !== JSON.stringify(before.labels));
}
