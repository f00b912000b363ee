import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import type { Operation } from '../../kit/json-patch.ts';
import type { Result } from '../../kube/control-loop.ts';
import { isRefusal } from '../../kube/errors.ts';
import type { WriteResult } from '../../kube/writer.ts';
import { type Decision, isGuess, type Placement } from '../../placement/decide.ts';
import type { SkipReason } from '../../placement/eligibility.ts';
import { refusalProblem } from '../../placement/object-problems.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { podPatch, releasePatch } from '../../placement/patch/patch.ts';
import { lacking, type Toleration } from '../../placement/patch/tolerations.ts';
import { onlyObserves, type PlacementIntent, placingFor, placingText } from '../../placement/placing.ts';
import { contradictionOf } from '../../placement/reasons.ts';
import { refusedParts } from '../../placement/refused-parts.ts';
import type { Settings } from '../../placement/settings.ts';
import { afterWrite, keyOf, type Subject } from '../../placement/subject.ts';
import { regardingPod } from '../announce.ts';
import type { WritingOptions } from '../controller-options.ts';
import { answered, type Decided, HELD_AGAIN_MS, isFinal, note, notPlaced, OPEN_AGAIN_MS } from '../memory.ts';
import type { Notices } from '../refusals.ts';
import { forgetPod, hasTolerations, type PodCase, type PodParts } from './decision.ts';

/** Remembers a decision. After a write, `subject` is the pod's then; `wrote`: the tolerations that it must have from now on. */
function remember(
  parts: PodParts,
  at: PodCase,
  decision: Decision,
  subject = at.subject,
  wrote?: readonly Toleration[],
): boolean {
  const { key, record, settings } = at;
  if (isFinal(decision)) parts.backlog.forget(key);
  return parts.memory.remember(key, record, { subjectKey: keyOf(subject), settings }, decision, wrote);
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
  const { written, part, then } = (await release(parts, at, placing, isGuess(decision))) ?? {};
  switch (written?.kind) {
    case 'conflict':
      return { outcome: 'conflict' };
    case 'gone':
      forgetPod(parts, key);
      return { outcome: 'unchanged' };
    case undefined:
    case 'recorded':
      remember(parts, at, decision);
      return { outcome: written === undefined ? 'unchanged' : 'written', againInMs };
    case 'written': {
      const version = versionAfter(pod, written.object);
      remember(parts, at, decision, then, part?.tolerations);
      // The write changed nothing: another webhook removed the tolerations from the same request, and no event will follow.
      if (version === pod.resourceVersion) return { outcome: 'conflict' };
      answered(record, version, pods.get(key), clock.monotonic());
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
  return notPlaced(decision, at.pod, at.settings, remember(parts, at, decision));
}

/** Handles a skipped pod: only the gate is removed, so that the pod can be scheduled as its author wrote it. */
export async function skip(parts: PodParts, at: PodCase, reason: SkipReason): Promise<Result> {
  const { key, record, pod, subject, settings } = at;
  const isReleased = pod.gated !== undefined && reason !== 'deleting' && reason !== 'terminal';
  const { written } = (isReleased && (await release(parts, at, undefined))) || {};
  if (written?.kind === 'conflict') return { outcome: 'conflict' };
  if (written?.kind === 'written') {
    answered(record, versionAfter(pod, written.object), parts.pods.get(key), parts.clock.monotonic());
  }
  parts.memory.remember(key, record, { subjectKey: keyOf(subject), settings }, { kind: 'skip', reason });
  return { outcome: written === undefined ? 'unchanged' : 'written' };
}

/** Returns the version of a pod after a write, by the API server's answer. */
function versionAfter({ resourceVersion }: Pod, answer: JsonObject): string {
  return stringAt(objectAt(answer, 'metadata'), 'resourceVersion') ?? resourceVersion;
}

/** Whether a pod without a node asks for other architectures than its images have. */
export function fitsNowhere(pod: Pod, decision: Decided['decision'], settings: Settings): boolean {
  return pod.nodeName === undefined && contradictionOf(decision, pod.asked, settings) !== undefined;
}

type ReleaseParts = Pick<WritingOptions, 'write'> & Pick<Notices, 'announcer' | 'noteRefusal'>;

type Released = {
  readonly written: WriteResult;
  /** The part of the intent that was written. */
  readonly part: PlacementIntent | undefined;
  /** The pod's subject after the write. */
  readonly then: Subject;
};

/** A binding changes neither tolerations nor `metadata.generation`, so the rest of a patch says nothing about it. */
const isUnbound: Operation = { op: 'test', path: '/spec/nodeName', value: null };

/**
 * Writes what a pod lacks of an intent, and removes archaware's gate. Without an intent it removes only the gate. Undefined: there was
 * nothing to write. A guess is not for a pod that was bound meanwhile. Throws the API server's refusal: the gate stays, and the caller
 * tries again. If the API server keeps refusing for a reason in the pod itself, the gate is removed with a smaller write: without the part
 * that the refusal names (tolerations or node affinity), then without both.
 */
export async function release(
  parts: ReleaseParts,
  at: Omit<PodCase, 'key' | 'namespace'>,
  placing: PlacementIntent | undefined,
  isGuess = false,
): Promise<Released | undefined> {
  const { pod, subject, record, signal } = at;
  const { namespace, name, gated } = pod;
  // In the mode `observe` a gate of an earlier mode stays, too.
  if (onlyObserves(at.settings)) return undefined;
  const less = record.notes?.lessened;
  const intents = intentsOf(pod, placing, less?.refusal);
  const by = Math.min(less?.by ?? 0, intents.length - 1);
  const part = intents[by];
  const missing = lacking(pod.tolerations ?? [], part?.tolerations ?? []);
  const patch = gated ? releasePatch(pod, gated, part) : podPatch(pod, missing);
  if (patch.length === 0) return undefined;
  // What the watch will show, often before the answer.
  const then = afterWrite(subject, missing);
  note(record, 'expected', then);
  try {
    const target = { kind: 'Pod', namespace, name, action: gated ? 'release' : 'tolerate' } as const;
    const written = await parts.write(target, isGuess && !pod.nodeName ? [isUnbound, ...patch] : patch, signal);
    for (const over of ['refused', 'lessened'] as const) note(record, over, undefined);
    if (written.kind === 'written' && less !== undefined) {
      parts.announcer.report(record, regardingPod(pod), refusalProblem(less.refusal, part));
    }
    return { written, part, then };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const isForGood = parts.noteRefusal(record, regardingPod(pod), error);
    if (!isForGood || by === intents.length - 1) throw error;
    note(record, 'lessened', { by: by + 1, refusal: less?.refusal ?? error });
  } finally {
    note(record, 'expected', undefined);
  }
  return release(parts, at, placing, isGuess);
}

/**
 * Returns the intent and, for a gated pod, the smaller intents to try if the API server keeps refusing it. `refusal`: if its message
 * is about tolerations alone, they are left out first, else the affinity.
 */
function intentsOf(
  pod: Pod,
  placing: PlacementIntent | undefined,
  refusal: Error | undefined,
): (PlacementIntent | undefined)[] {
  if (pod.gated === undefined || placing === undefined) return [placing];
  const [first] = placing.tolerations;
  if (placing.affinity === undefined) return [placing, undefined];
  const named = first === undefined || refusal === undefined ? [] : refusedParts(refusal.message, first.key);
  const isOfTolerations = named.includes('tolerations') && !named.includes('affinity');
  return [placing, isOfTolerations ? { ...placing, tolerations: [] } : { ...placing, affinity: undefined }, undefined];
}
