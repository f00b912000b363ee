import type { Change } from '../kube/watch/reflector.ts';
import type { Namespace } from '../placement/eligibility.ts';

/** Whether a change of a namespace may change the decisions for its pods and DaemonSets. */
export function changesPlacement({ now, before }: Change<Namespace>): boolean {
  if (now === undefined || before === undefined) return now !== undefined;
  return now.preferred !== before.preferred || JSON.stringify(now.labels) !== JSON.stringify(before.labels);
}
