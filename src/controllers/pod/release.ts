import type { Operation } from '../../kit/json-patch.ts';
import { isRefusal } from '../../kube/errors.ts';
import type { WriteResult } from '../../kube/writer.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { podPatch, releasePatch } from '../../placement/patch/patch.ts';
import { onlyObserves, type PlacementIntent } from '../../placement/placing.ts';
import { refusedParts } from '../../placement/refused-parts.ts';
import { refusalProblem, regardingPod } from '../announce.ts';
import type { WritingOptions } from '../common-options.ts';
import { note } from '../object-record.ts';
import type { Notices } from '../refusals.ts';
import { expectedKey, type PodCase } from './decision.ts';

type ReleaseParts = Pick<WritingOptions, 'write'> & Pick<Notices, 'announcer' | 'noteRefusal'>;

/** A binding changes neither tolerations nor `metadata.generation`, so the rest of a patch says nothing about it. */
const isUnbound: Operation = { op: 'test', path: '/spec/nodeName', value: null };

/**
 * Writes what a pod lacks of an intent, and removes archaware's gate. Without an intent it removes only the gate. Returns the result, and
 * the part of the intent that was written; undefined: there was nothing to write. A guess is not for a pod that was bound meanwhile.
 * Throws the API server's refusal: the gate stays, and the caller tries again. If the API server keeps refusing for a reason in the pod
 * itself, the gate is removed with a smaller write: without the part that the refusal names (tolerations or node affinity), then without
 * both.
 */
export async function release(
  parts: ReleaseParts,
  at: Omit<PodCase, 'key' | 'subject'>,
  placing: PlacementIntent | undefined,
  isGuess = false,
): Promise<{ readonly written: WriteResult; readonly part: PlacementIntent | undefined } | undefined> {
  const { pod, record, signal } = at;
  const { namespace, name, gated } = pod;
  // In the mode `observe` a gate of an earlier mode stays, too.
  if (onlyObserves(at.settings)) return undefined;
  const less = record.notes?.lessened;
  const intents = intentsOf(pod, placing, less?.refusal);
  const by = Math.min(less?.by ?? 0, intents.length - 1);
  const part = intents[by];
  const patch = gated ? releasePatch(pod, gated, part) : podPatch(pod, part?.tolerations ?? []);
  if (patch.length === 0) return undefined;
  // What the watch will show, often before the answer.
  note(record, 'expected', expectedKey(at, part));
  try {
    const target = { kind: 'Pod', namespace, name, action: gated ? 'release' : 'tolerate' } as const;
    const written = await parts.write(target, isGuess && !pod.nodeName ? [isUnbound, ...patch] : patch, signal);
    for (const over of ['refused', 'lessened'] as const) note(record, over, undefined);
    if (written.kind === 'written' && less !== undefined) {
      parts.announcer.report(record, regardingPod(pod), refusalProblem(less.refusal, part));
    }
    return { written, part };
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
