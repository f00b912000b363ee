import type { Operation } from '../../kit/json-patch.ts';
import { type ApiError, isRefusal } from '../../kube/errors.ts';
import type { Regarding } from '../../kube/events.ts';
import type { WriteResult } from '../../kube/writer.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { podPatch, releasePatch } from '../../placement/patch/patch.ts';
import { asOurs, lacking, type Toleration, tolerationText } from '../../placement/patch/tolerations.ts';
import type { PlacementIntent } from '../../placement/placing.ts';
import { refusedParts } from '../../placement/refused-parts.ts';
import { type Announcer, refusalProblem } from '../announce.ts';
import { note, type ObjectRecord } from '../object-record.ts';
import type { NoteRefusal } from '../refusals.ts';
import type { RefusedEntries } from '../refused-entries.ts';

/** The result of a write. `placing`: the part of the intent that was written. */
export type WrittenPlacing =
  | Exclude<WriteResult, { kind: 'written' }>
  | (Extract<WriteResult, { kind: 'written' }> & { readonly placing: PlacementIntent | undefined })
  | { readonly kind: 'nothing' }
  /** A part of the intent is known to be refused; the rest was written, if there was any. */
  | { readonly kind: 'refused'; readonly againInMs: number };

/** Sends the patches of a pod. */
export type SendRelease = {
  /** `placing`: the part of the intent that the patch contains. */
  send(
    pod: Pod,
    placing: PlacementIntent | undefined,
    patch: readonly Operation[],
  ): Promise<Exclude<WrittenPlacing, { kind: 'nothing' | 'refused' }>>;
  /** Has the API server check a patch without storing anything. */
  check(pod: Pod, patch: readonly Operation[]): Promise<WriteResult>;
};

type ReleaseOptions = {
  readonly noteRefusal: NoteRefusal;
  readonly entries: RefusedEntries;
  readonly announcer: Announcer;
};

/**
 * Writes what a pod lacks of an intent, and removes archaware's gate. Without an intent it removes only the gate. Throws the API
 * server's refusal: the gate stays, and the caller tries again. If the refusal is about single tolerations, the others are
 * written first. If the API server keeps refusing for a reason in the pod itself, the gate is removed with a smaller write:
 * without the part that the refusal names (tolerations or node affinity), then without both.
 */
export type Release = (
  record: ObjectRecord,
  pod: Pod,
  placing: PlacementIntent | undefined,
  sender: SendRelease,
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

function lackedBy(pod: Pod, placing: PlacementIntent | undefined): Toleration[] {
  return lacking(pod.tolerations ?? [], placing?.tolerations ?? []);
}

/** Whether a pod has a toleration of the same taint for another architecture: an earlier write of archaware passed. */
function hasOurs(pod: Pod, wanted: readonly Toleration[]): boolean {
  return (pod.tolerations ?? []).some((one) => wanted.some((other) => asOurs(one, other) !== undefined));
}

/** Returns the intent without the tolerations with these texts. */
function without(placing: PlacementIntent, isLeftOut: (toleration: string) => boolean): PlacementIntent {
  return { ...placing, tolerations: placing.tolerations.filter((one) => !isLeftOut(tolerationText(one))) };
}

/** Creates the release. */
export function createRelease({ noteRefusal, entries, announcer }: ReleaseOptions): Release {
  /** Returns the tolerations that a pod lacks, and of these the ones that must not be tried yet. */
  function known(pod: Pod, placing: PlacementIntent | undefined) {
    const missing = lackedBy(pod, placing);
    const pauses = missing.map((one) => entries.pauseMs(pod.namespace, tolerationText(one)));
    const refused = missing.filter((_, index) => (pauses[index] ?? 0) > 0);
    return { missing, refused, againInMs: Math.min(...pauses.filter((ms) => ms > 0)) };
  }

  /** Returns the part of an intent that the API server takes after it has refused the whole; undefined if there is none. */
  async function partTaken(
    pod: Pod,
    placing: PlacementIntent,
    refusal: ApiError,
    isForGood: boolean,
    { check }: SendRelease,
  ) {
    const missing = new Map(lackedBy(pod, placing).map((toleration) => [tolerationText(toleration), toleration]));
    const taken = await entries.sift(pod.namespace, [...missing.keys()], refusal, {
      hasOthers: hasOurs(pod, placing.tolerations),
      isForGood,
      dryRun: (entry) => check(pod, podPatch(pod, [missing.get(entry) ?? []].flat())),
    });
    return taken && without(placing, (toleration) => missing.has(toleration) && !taken.has(toleration));
  }

  const write: Release = async (record, pod, placing, sender) => {
    const less = record.notes?.lessened;
    const parts = partsOf(pod, placing, less?.refusal);
    const by = Math.min(less?.by ?? 0, parts.length - 1);
    const part = parts[by];
    const { missing, refused, againInMs } = known(pod, part);
    // A gated pod whose tolerations are all refused goes on below: only its own refusals let it go with less.
    const isLeft = refused.length < missing.length;
    if (part !== undefined && refused.length > 0 && (isLeft || pod.gated === undefined)) {
      const texts = new Set(refused.map(tolerationText));
      const rest = without(part, (toleration) => texts.has(toleration));
      const written = isLeft ? await sender.send(pod, rest, patchFor(pod, rest)) : undefined;
      return written?.kind === 'conflict' || written?.kind === 'gone' ? written : { kind: 'refused', againInMs };
    }
    const patch = patchFor(pod, part);
    if (patch.length === 0) return { kind: 'nothing' };
    try {
      const written = await sender.send(pod, part, patch);
      note(record, 'refused', undefined);
      note(record, 'lessened', undefined);
      if (written.kind === 'written') {
        entries.took(pod.namespace, missing.map(tolerationText));
        if (less !== undefined) announcer.report(record, regardingPod(pod), refusalProblem(less.refusal, part));
      }
      return written;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const isForGood = noteRefusal(record, regardingPod(pod), error);
      const taken = part && (await partTaken(pod, part, error, isForGood, sender));
      if (taken !== undefined) await sender.send(pod, taken, patchFor(pod, taken));
      if (taken !== undefined || !isForGood || by === parts.length - 1) throw error;
      note(record, 'lessened', { by: by + 1, refusal: less?.refusal ?? error });
      return write(record, pod, placing, sender);
    }
  };
  return write;
}

/** Returns the reference to a pod for an Event. */
export function regardingPod({ namespace, name, uid }: Pod): Regarding {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}
