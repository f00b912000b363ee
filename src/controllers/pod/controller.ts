import type { Result } from '../../kube/control-loop.ts';
import { settingsFor } from '../../placement/eligibility.ts';
import { type Problem, tooLargeProblems } from '../../placement/object-problems.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { readPodSubject } from '../../placement/subject.ts';
import { regardingPod } from '../announce.ts';
import { behindMs, createMemory, HELD_AGAIN_MS, type Holding, notPlaced } from '../memory.ts';
import { createNotices } from '../refusals.ts';
import { createBacklog } from './backlog.ts';
import { carryOut, fitsNowhere, skip } from './carry-out.ts';
import {
  confirm,
  decidePod,
  follows,
  forgetPod,
  isStillValid,
  isUpToDate,
  type PodAtHand,
  type PodCase,
  type PodControllerOptions,
  type PodParts,
  problemsOfPod,
} from './decision.ts';

/** The pod controller: gathers the input of a pod's decision, decides, writes. */
export type PodController = ReturnType<typeof createPodController>;

/** Creates the pod controller. `kube/control-loop.ts` owns its queue and its workers. */
export function createPodController(options: PodControllerOptions) {
  const { clock } = options;
  const memory = createMemory(options.images, clock);
  const backlog = createBacklog(clock, options.onTurn);
  const parts: PodParts = { ...options, ...createNotices(options), memory, backlog };
  return {
    reconcile: (key: string, signal: AbortSignal): Promise<Result> => reconcile(parts, key, signal),
    states: memory.all,
    /** Returns the pods to reconcile again, and when, after the lookup of an image (its canonical name) has ended. */
    lookupEnded: memory.lookupEnded,
    /**
     * Whether the event of a pod needs no reconciliation: nothing that decides has changed, or the event shows archaware's own
     * write. Such an event often arrives before the answer to the write.
     */
    isUpToDate(key: string, now: Pod): boolean {
      const record = memory.all.get(key);
      const found = record?.uid === now.uid ? atHand(parts, now) : undefined;
      return record !== undefined && found !== undefined && isUpToDate(record, found, clock.monotonic());
    },
    /** Makes the next reconciliation decide again, because something other than the pod has changed. */
    invalidate: memory.invalidate,
    /** Returns the pods whose architectures follow the cluster's. */
    *followers(): Iterable<string> {
      for (const [key, record] of memory.all) if (follows(record, options.pods.get(key))) yield key;
    },
    contested: (): number => parts.contention.count(memory.all.values()),
    end: backlog.end,
  };
}

async function reconcile(parts: PodParts, key: string, signal: AbortSignal): Promise<Result> {
  const { memory } = parts;
  const pod = parts.pods.get(key);
  if (pod === undefined) {
    forgetPod(parts, key);
    return { outcome: 'unchanged' };
  }
  const found = atHand(parts, pod);
  // Every pod has a namespace, so the event of the namespace will follow and queue its pods.
  if (found === undefined) return { outcome: 'waiting' };
  if (memory.all.get(key)?.uid !== pod.uid) parts.backlog.forget(key);
  const record = memory.of(key, pod.uid);
  // The watch does not show the last write yet. The event of that write queues the pod again.
  const behind = behindMs(record, pod, parts.clock.monotonic());
  if (behind > 0) return { outcome: 'unchanged', againInMs: behind };
  const { namespace, settings } = found;
  if (isStillValid(record, found)) {
    const result = keep(found, record, parts.clock.monotonic());
    if (result !== undefined) return result;
    // So the images decide, even if an earlier process placed the pod.
    memory.invalidate(key);
  }
  const subject = readPodSubject(pod, namespace, settings);
  const at: PodCase = { key, record, subject, signal, ...found };
  const { skipped } = subject;
  if (skipped !== undefined) {
    if (skipped === 'too-large') report(parts, at, tooLargeProblems(pod));
    const result = await skip(parts, at, skipped);
    if (result.outcome !== 'conflict') parts.onDecided(key);
    return result;
  }
  const decision = decidePod(parts, at);
  report(parts, at, problemsOfPod(parts, at, decision));
  const result = await carryOut(parts, at, decision);
  if (result.outcome === 'conflict') return result;
  if (decision.kind !== 'wait' || decision.failed.length > 0) parts.onDecided(key);
  return result;
}

/** Returns a pod with its namespace and settings; undefined until the watch shows the namespace. */
function atHand(parts: PodParts, pod: Pod): PodAtHand | undefined {
  const namespace = parts.namespaces.get(pod.namespace);
  if (namespace === undefined) return undefined;
  return { pod, namespace, settings: settingsFor(parts.settings(), { namespace, labels: pod.labels }) };
}

/** Returns the result for a decision that is still valid; undefined if it must be made again, which it is from time to time. */
function keep({ pod, settings }: PodAtHand, record: Holding, now: number): Result | undefined {
  const { decision, at: since } = record;
  confirm(record, pod, now);
  if (decision.kind !== 'hold' && !fitsNowhere(pod, decision, settings)) return { outcome: 'unchanged' };
  const againInMs = HELD_AGAIN_MS - (now - since);
  if (againInMs <= 0) return undefined;
  if (decision.kind !== 'hold') return { outcome: 'unchanged', againInMs };
  return { ...notPlaced(decision, pod, settings, true), againInMs };
}

function report({ announcer }: PodParts, { pod, record }: PodCase, problems: readonly Problem[]): void {
  for (const problem of problems) announcer.report(record, regardingPod(pod), problem);
}
