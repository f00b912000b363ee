import type { SpreadLimit } from './limit.ts';
import { cureText, limitText, rolloutText } from './text.ts';

/** A limit that matters to a workload: it wants more pods than can run. `text`: what happens; `cure`: what helps. */
export type SpreadFinding = { readonly limit: SpreadLimit; readonly text: string; readonly cure: string };

/** The pods of a workload. `rollsAhead`: whether a rollout waits for a new pod before it stops an old one. */
export type WantedPods = { readonly pods: number; readonly rollsAhead: boolean };

/** Returns what a limit means for a workload; undefined if all of its pods can run, now and in a rollout. */
export function findingOf(limit: SpreadLimit | undefined, { pods, rollsAhead }: WantedPods): SpreadFinding | undefined {
  if (limit === undefined || pods === 0) return undefined;
  const cure = cureText(limit);
  if (pods > limit.most) return { limit, text: limitText(limit, pods), cure };
  // Old pods count beside the new one, unless the constraint tells the revisions apart.
  const isTight = pods === limit.most && rollsAhead && !limit.constraint.isByRevision;
  return isTight ? { limit, text: rolloutText(limit), cure } : undefined;
}

/** The scheduler's words for a node that a hard constraint rules out. */
const SCHEDULER_SAYS = "didn't match pod topology spread constraints";

/** Returns what a limit means for a pod that waits; undefined if the scheduler does not say that a constraint keeps it off. */
export function findingForPending(
  limit: SpreadLimit | undefined,
  scheduler: string | undefined,
): SpreadFinding | undefined {
  if (limit === undefined || scheduler?.includes(SCHEDULER_SAYS) !== true) return undefined;
  return { limit, text: limitText(limit, undefined), cure: cureText(limit) };
}
