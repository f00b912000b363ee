import type { Operation } from '../../kit/json-patch.ts';
import type { Result } from '../../kube/control-loop.ts';
import type { Store } from '../../kube/watch/store.ts';
import { contradictionOf } from '../../placement/contradiction.ts';
import { type Decision, isGuess, type Placement } from '../../placement/decide.ts';
import type { SkipReason } from '../../placement/eligibility.ts';
import { type Pod, podAfter } from '../../placement/objects/pod.ts';
import type { Toleration } from '../../placement/patch/tolerations.ts';
import { onlyObserves, type PlacementIntent, placingFor, placingText } from '../../placement/placing.ts';
import { decisionNote } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import { regardingPod } from '../announce.ts';
import type { WritingOptions } from '../common-options.ts';
import type { Contention } from '../contention.ts';
import { answered, HELD_AGAIN_MS, isFinal, type Memory, OPEN_AGAIN_MS } from '../memory.ts';
import { type Decided, note } from '../object-record.ts';
import { NO_ROOM_AGAIN_MS } from '../waiting.ts';
import type { Backlog } from './backlog.ts';
import { expectedKey, hasTolerations, keyOf, type PodAtHand, type PodCase } from './decision.ts';
import type { Release, SendRelease, WrittenPlacing } from './release.ts';

/** A binding changes neither tolerations nor `metadata.generation`, so the rest of a patch says nothing about it. */
const isUnbound: Operation = { op: 'test', path: '/spec/nodeName', value: null };

type CarryOutParts = Pick<WritingOptions, 'write' | 'clock'> & {
  readonly pods: Store<Pod>;
  readonly memory: Memory;
  readonly backlog: Backlog;
  readonly contention: Contention;
  readonly release: Release;
  readonly forget: (key: string) => void;
  /** Called when a pod was placed, with the seconds since its creation. */
  readonly onPlaced?: ((seconds: number) => void) | undefined;
};

/** Creates the functions that write what was decided about a pod, and remember it. */
export function createCarryOut(parts: CarryOutParts) {
  const { pods, memory, backlog, contention, release, clock } = parts;

  /** Remembers a decision about the pod as it is now. `wrote`: the tolerations that it must have from now on. */
  function remember(at: PodCase, now: Pod, decision: Decision, wrote?: readonly Toleration[]): boolean {
    const { key, record, settings } = at;
    if (isFinal(decision)) backlog.forget(key);
    const subjectKey = now === at.pod ? at.subject.key : keyOf({ ...at, pod: now });
    return memory.remember(key, record, { subjectKey, settings }, decision, wrote);
  }

  /**
   * Returns the milliseconds to wait before missing tolerations are written again, because another webhook removed them from the
   * same write or later; 0: write.
   */
  function undoneMs({ pod, record }: PodCase, wanted: readonly Toleration[]): number {
    if (hasTolerations(pod, record.notes?.wrote ?? [])) return 0;
    const intent = JSON.stringify(wanted);
    const said =
      "another webhook or controller removes archaware's tolerations from this pod: configure it to keep them";
    const waitMs = contention.waitMs(record, intent, regardingPod(pod), { action: 'Placing', note: said });
    if (waitMs === 0) contention.wrote(record, intent);
    return waitMs;
  }

  async function place(at: PodCase, decision: Placement): Promise<Result> {
    const { key, pod, record, subject, settings } = at;
    const placing = placingFor(decision, subject);
    const isDone = isFinal(decision) && !fitsNowhere(pod, decision, settings);
    const againInMs = isDone ? undefined : isFinal(decision) ? HELD_AGAIN_MS : OPEN_AGAIN_MS;
    const waitMs = undoneMs(at, placing.tolerations);
    if (waitMs > 0) return { outcome: 'conflict', againInMs: waitMs };
    const written = await write(at, placing, isGuess(decision));
    switch (written.kind) {
      case 'conflict':
        return { outcome: 'conflict' };
      case 'gone':
        parts.forget(key);
        return { outcome: 'unchanged' };
      case 'nothing':
      case 'recorded':
        remember(at, pod, decision);
        return { outcome: written.kind === 'nothing' ? 'unchanged' : 'written', againInMs };
      case 'written': {
        const tolerations = written.placing?.tolerations ?? [];
        const now = podAfter(pod, tolerations, written.object);
        remember(at, now, decision, tolerations);
        // The write changed nothing: another webhook removed the tolerations from the same request, and no event will follow.
        if (now.resourceVersion === pod.resourceVersion) return { outcome: 'conflict' };
        answered(record, now.resourceVersion, pods.get(key), clock.monotonic());
        if (pod.nodeName === undefined) parts.onPlaced?.(Math.max(0, clock.wall() - pod.createdAt) / 1000);
        return { outcome: 'written', againInMs, detail: placingText(written.placing ?? placing) };
      }
      default:
        return written satisfies never;
    }
  }

  /** Writes what the pod lacks. In the mode `observe` it writes nothing, and a gate of an earlier mode stays, too. */
  function write(
    at: PodCase,
    placing: PlacementIntent | undefined,
    isGuessed = false,
  ): WrittenPlacing | Promise<WrittenPlacing> {
    if (onlyObserves(at.settings)) return { kind: 'nothing' };
    return release(at.record, at.pod, placing, sender(at, isGuessed));
  }

  /** Returns the function that sends a patch, and notes what the watch will show. A guess is not for a pod that was bound meanwhile. */
  function sender({ record, signal, ...at }: PodCase, isGuessed: boolean): SendRelease {
    const targetOf = ({ namespace, name, gated }: Pod) =>
      ({ kind: 'Pod', namespace, name, action: gated ? 'release' : 'tolerate' }) as const;
    return async (pod, placing, patch) => {
      note(record, 'expected', expectedKey({ ...at, pod }, placing));
      try {
        const sent = isGuessed && pod.nodeName === undefined ? [isUnbound, ...patch] : patch;
        const written = await parts.write(targetOf(pod), sent, signal);
        return written.kind === 'written' ? { ...written, placing } : written;
      } finally {
        note(record, 'expected', undefined);
      }
    };
  }

  return {
    decided(at: PodCase, decision: Decision): Result | Promise<Result> {
      switch (decision.kind) {
        case 'wait': {
          const isReported = remember(at, at.pod, decision);
          return { outcome: 'waiting', againInMs: isReported ? decision.againInMs : NO_ROOM_AGAIN_MS };
        }
        case 'hold':
          remember(at, at.pod, decision);
          return held(at, decision, HELD_AGAIN_MS);
        case 'place':
          return place(at, decision);
        default:
          return decision satisfies never;
      }
    },
    /** Handles a skipped pod: only the gate is removed, so that the pod can be scheduled as its author wrote it. */
    async skipped(at: PodCase, reason: SkipReason): Promise<Result> {
      const { key, record, pod, subject, settings } = at;
      const isReleased = pod.gated !== undefined && reason !== 'deleting' && reason !== 'terminal';
      const left: WrittenPlacing = isReleased ? await write(at, undefined) : { kind: 'nothing' };
      if (left.kind === 'conflict') return { outcome: 'conflict' };
      if (left.kind === 'written') {
        const { resourceVersion } = podAfter(pod, [], left.object);
        answered(record, resourceVersion, parts.pods.get(key), clock.monotonic());
      }
      memory.remember(key, record, { subjectKey: subject.key, settings }, { kind: 'skip', reason });
      return { outcome: left.kind === 'nothing' ? 'unchanged' : 'written' };
    },
  };
}

/** Returns the result for a pod that is held. */
export function held({ pod, settings }: PodAtHand, decision: Decision, againInMs: number): Result {
  return { outcome: 'held', againInMs, detail: decisionNote(decision, pod.os, settings.schedulable) };
}

/** Whether a pod without a node asks for other architectures than its images have. */
export function fitsNowhere(pod: Pod, decision: Decided['decision'], settings: Settings): boolean {
  return pod.nodeName === undefined && contradictionOf(decision, pod.asked, settings) !== undefined;
}
