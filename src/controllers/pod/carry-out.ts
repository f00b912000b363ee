import type { Result } from '../../kube/control-loop.ts';
import { contradictionOf } from '../../placement/contradiction.ts';
import { type Decision, isGuess, type Placement } from '../../placement/decide.ts';
import type { SkipReason } from '../../placement/eligibility.ts';
import { type Pod, podAfter } from '../../placement/objects/pod.ts';
import type { Toleration } from '../../placement/patch/tolerations.ts';
import { placingFor, placingText } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import { regardingPod } from '../announce.ts';
import { answered, HELD_AGAIN_MS, isFinal, notPlaced, OPEN_AGAIN_MS } from '../memory.ts';
import type { Decided } from '../object-record.ts';
import { hasTolerations, keyOf, type PodCase, type PodParts } from './decision.ts';
import { release } from './release.ts';

/** Remembers a decision about the pod as it is now. `wrote`: the tolerations that it must have from now on. */
function remember(parts: PodParts, at: PodCase, now: Pod, decision: Decision, wrote?: readonly Toleration[]): boolean {
  const { key, record, settings } = at;
  if (isFinal(decision)) parts.backlog.forget(key);
  const subjectKey = now === at.pod ? at.subject.key : keyOf({ ...at, pod: now });
  return parts.memory.remember(key, record, { subjectKey, settings }, decision, wrote);
}

/**
 * Returns the milliseconds to wait before missing tolerations are written again, because another webhook removed them from the
 * same write or later; 0: write.
 */
function undoneMs({ contention }: PodParts, { pod, record }: PodCase, wanted: readonly Toleration[]): number {
  if (hasTolerations(pod, record.notes?.wrote ?? [])) return 0;
  const intent = JSON.stringify(wanted);
  const said = "another webhook or controller removes archaware's tolerations from this pod: configure it to keep them";
  const waitMs = contention.waitMs(record, intent, regardingPod(pod), { action: 'Placing', note: said });
  if (waitMs === 0) contention.wrote(record, intent);
  return waitMs;
}

async function place(parts: PodParts, at: PodCase, decision: Placement): Promise<Result> {
  const { key, pod, record, subject, settings } = at;
  const { pods, clock } = parts;
  const placing = placingFor(decision, subject);
  const isDone = isFinal(decision) && !fitsNowhere(pod, decision, settings);
  const againInMs = isDone ? undefined : isFinal(decision) ? HELD_AGAIN_MS : OPEN_AGAIN_MS;
  const waitMs = undoneMs(parts, at, placing.tolerations);
  if (waitMs > 0) return { outcome: 'conflict', againInMs: waitMs };
  const { written, part } = (await release(parts, at, placing, isGuess(decision))) ?? {};
  switch (written?.kind) {
    case 'conflict':
      return { outcome: 'conflict' };
    case 'gone':
      parts.forget(key);
      return { outcome: 'unchanged' };
    case undefined:
    case 'recorded':
      remember(parts, at, pod, decision);
      return { outcome: written === undefined ? 'unchanged' : 'written', againInMs };
    case 'written': {
      const tolerations = part?.tolerations ?? [];
      const now = podAfter(pod, tolerations, written.object);
      remember(parts, at, now, decision, tolerations);
      // The write changed nothing: another webhook removed the tolerations from the same request, and no event will follow.
      if (now.resourceVersion === pod.resourceVersion) return { outcome: 'conflict' };
      answered(record, now.resourceVersion, pods.get(key), clock.monotonic());
      if (pod.nodeName === undefined) parts.onPlaced?.(Math.max(0, clock.wall() - pod.createdAt) / 1000);
      return { outcome: 'written', againInMs, detail: placingText(part ?? placing) };
    }
    default:
      return written satisfies never;
  }
}

/** Writes what was decided about a pod, and remembers it. */
export async function carryOut(parts: PodParts, at: PodCase, decision: Decision): Promise<Result> {
  if (decision.kind === 'place') return place(parts, at, decision);
  return notPlaced(decision, at.pod, at.settings, remember(parts, at, at.pod, decision));
}

/** Handles a skipped pod: only the gate is removed, so that the pod can be scheduled as its author wrote it. */
export async function skip(parts: PodParts, at: PodCase, reason: SkipReason): Promise<Result> {
  const { key, record, pod, subject, settings } = at;
  const isReleased = pod.gated !== undefined && reason !== 'deleting' && reason !== 'terminal';
  const { written } = (isReleased && (await release(parts, at, undefined))) || {};
  if (written?.kind === 'conflict') return { outcome: 'conflict' };
  if (written?.kind === 'written') {
    const { resourceVersion } = podAfter(pod, [], written.object);
    answered(record, resourceVersion, parts.pods.get(key), parts.clock.monotonic());
  }
  parts.memory.remember(key, record, { subjectKey: subject.key, settings }, { kind: 'skip', reason });
  return { outcome: written === undefined ? 'unchanged' : 'written' };
}

/** Whether a pod without a node asks for other architectures than its images have. */
export function fitsNowhere(pod: Pod, decision: Decided['decision'], settings: Settings): boolean {
  return pod.nodeName === undefined && contradictionOf(decision, pod.asked, settings) !== undefined;
}
