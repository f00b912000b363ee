import type { Operation } from '../../kit/json-patch.ts';
import { isRefusal } from '../../kube/errors.ts';
import type { WriteResult } from '../../kube/writer.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { podPatch, releasePatch } from '../../placement/patch/patch.ts';
import type { PlacementIntent } from '../../placement/placing.ts';
import { refusedParts } from '../../placement/refused-parts.ts';
import { type Announcer, refusalProblem, regardingPod } from '../announce.ts';
import { note, type ObjectRecord } from '../object-record.ts';
import type { NoteRefusal } from '../refusals.ts';

/** The result of a write. `placing`: the part of the intent that was written. */
export type WrittenPlacing =
  | Exclude<WriteResult, { kind: 'written' }>
  | (Extract<WriteResult, { kind: 'written' }> & { readonly placing: PlacementIntent | undefined })
  | { readonly kind: 'nothing' };

/** Sends a patch of a pod. `placing`: the part of the intent that the patch contains. */
export type SendRelease = (
  pod: Pod,
  placing: PlacementIntent | undefined,
  patch: readonly Operation[],
) => Promise<Exclude<WrittenPlacing, { kind: 'nothing' }>>;

/**
 * Writes what a pod lacks of an intent, and removes archaware's gate. Without an intent it removes only the gate. Throws the API
 * server's refusal: the gate stays, and the caller tries again. If the API server keeps refusing for a reason in the pod itself, the gate is removed with a smaller write:
 * without the part that the refusal names (tolerations or node affinity), then without both.
 */
export type Release = (
  record: ObjectRecord,
  pod: Pod,
  placing: PlacementIntent | undefined,
  send: SendRelease,
) => Promise<WrittenPlacing>;

function patchFor(pod: Pod, placing: PlacementIntent | undefined): Operation[] {
  return pod.gated ? releasePatch(pod, pod.gated, placing) : podPatch(pod, placing?.tolerations ?? []);
}

/**
 * Returns the intent and, for a gated pod, the smaller intents to try if the API server keeps refusing it. `refusal`: if its message
 * is about tolerations alone, they are left out first, else the affinity.
 */
function partsOf(
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

/** Creates the release. */
export function createRelease({
  noteRefusal,
  announcer,
}: {
  readonly noteRefusal: NoteRefusal;
  readonly announcer: Announcer;
}): Release {
  const write: Release = async (record, pod, placing, send) => {
    const less = record.notes?.lessened;
    const parts = partsOf(pod, placing, less?.refusal);
    const by = Math.min(less?.by ?? 0, parts.length - 1);
    const part = parts[by];
    const patch = patchFor(pod, part);
    if (patch.length === 0) return { kind: 'nothing' };
    try {
      const written = await send(pod, part, patch);
      note(record, 'refused', undefined);
      note(record, 'lessened', undefined);
      if (written.kind === 'written' && less !== undefined) {
        announcer.report(record, regardingPod(pod), refusalProblem(less.refusal, part));
      }
      return written;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const isForGood = noteRefusal(record, regardingPod(pod), error);
      if (!isForGood || by === parts.length - 1) throw error;
      note(record, 'lessened', { by: by + 1, refusal: less?.refusal ?? error });
      return write(record, pod, placing, send);
    }
  };
  return write;
}
