import type { Decision } from '../../placement/decide.ts';
import type { SkipReason } from '../../placement/eligibility.ts';
import { isOtherDaemonSet } from '../../placement/objects/kinds.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { lacking, tolerationText } from '../../placement/patch/tolerations.ts';
import { wantedTolerations } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import { type WorkloadName, workloadOf } from './overview.ts';

/** A pod with the decision about it. */
type DecidedPod = {
  readonly pod: Pick<Pod, 'namespace' | 'name' | 'owner' | 'labels' | 'tolerations' | 'written'>;
  readonly decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
  readonly settings: Settings;
};

/** A DaemonSet of another API group whose template lacks tolerations, and which, as text. */
export type OtherDaemonSet = WorkloadName & { readonly missing: readonly string[] };

/**
 * Returns the DaemonSets of other API groups whose templates lack tolerations, as far as their pods show it. Their controllers
 * judge a node's taints by the template before they create a pod, so what a pod is given comes too late for the next one.
 */
export function untoleratingDaemonSets(pods: Iterable<DecidedPod>): OtherDaemonSet[] {
  const found = new Map<string, OtherDaemonSet>();
  for (const { pod, decision, settings } of pods) {
    if (decision.kind !== 'place' || !isOtherDaemonSet(pod.owner)) continue;
    const wanted = wantedTolerations(settings, decision.architectures);
    // What archaware gave the pod is not in the template.
    const own = pod.written?.tolerations ? [] : (pod.tolerations ?? []);
    const missing = lacking(own, wanted).map(tolerationText);
    const name = workloadOf(pod);
    if (missing.length > 0) found.set(`${name.kind} ${name.namespace}/${name.name}`, { ...name, missing });
  }
  return [...found.values()];
}

/** The text about one of them for the person who can change its template. */
export function otherDaemonSetNote({ kind, namespace, name, missing }: OtherDaemonSet): string {
  return `${kind} ${namespace}/${name} creates pods only on nodes whose taints its template tolerates, and archaware writes only templates of apps/v1: add the tolerations ${missing.join(', ')} to its template`;
}
