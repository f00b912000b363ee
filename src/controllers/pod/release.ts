import type { Operation } from '../../kit/json-patch.ts';
import { isRefusal } from '../../kube/errors.ts';
import type { Regarding } from '../../kube/events.ts';
import type { WriteResult } from '../../kube/writer.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { podPatch, releasePatch } from '../../placement/patch/patch.ts';
import type { PlacementIntent } from '../../placement/placing.ts';
import { type Announcer, announceRefusal } from '../announce.ts';
import type { Refusals } from '../refusals.ts';

/** What became of a write, and what of the placing was in it. */
export type WrittenPlacing =
  | Exclude<WriteResult, { kind: 'written' }>
  | (Extract<WriteResult, { kind: 'written' }> & { readonly placing: PlacementIntent | undefined })
  | { readonly kind: 'nothing' };

/** Sends a patch of a pod; `placing`: what of it the pod is given. */
export type SendRelease = (
  pod: Pod,
  placing: PlacementIntent | undefined,
  patch: readonly Operation[],
) => Promise<Exclude<WrittenPlacing, { kind: 'nothing' }>>;

export type ReleaseOptions = {
  readonly refusals: Refusals;
  readonly announcer: Announcer;
};

/** Writes what pods lack, and releases those that hold our gate. */
export type Release = {
  /**
   * Writes what a pod lacks of a placing, and releases it where it holds our gate; no placing: the gate alone. Throws what
   * the API server refuses: the gate stays, and the write is to be tried again. Only where it keeps refusing for a reason in
   * the pod itself does the gate go with less: without node affinity, then without tolerations.
   */
  write(key: string, pod: Pod, placing: PlacementIntent | undefined, send: SendRelease): Promise<WrittenPlacing>;
  forget(key: string): void;
};

/** The patch that gives a pod what it lacks of a placing. */
function patchFor(pod: Pod, placing: PlacementIntent | undefined): Operation[] {
  return pod.gated ? releasePatch(pod, pod.gated, placing) : podPatch(pod, placing?.tolerations ?? []);
}

/** A placing and, for a gated pod, what is left of it where the API server keeps refusing it. */
function partsOf(pod: Pod, placing: PlacementIntent | undefined): (PlacementIntent | undefined)[] {
  if (pod.gated === undefined || placing === undefined) return [placing];
  return [placing, ...(placing.affinity === undefined ? [] : [{ ...placing, affinity: undefined }]), undefined];
}

/** Creates the writer of pods. */
export function createRelease({ refusals, announcer }: ReleaseOptions): Release {
  /** How much of their placing was refused for good, for the pods of which anything was. */
  const lessened = new Map<string, { readonly uid: string; readonly by: number; readonly refusal: Error }>();

  async function write(
    key: string,
    pod: Pod,
    placing: PlacementIntent | undefined,
    send: SendRelease,
  ): Promise<WrittenPlacing> {
    const parts = partsOf(pod, placing);
    const known = lessened.get(key);
    const less = known?.uid === pod.uid ? known : undefined;
    const by = Math.min(less?.by ?? 0, parts.length - 1);
    const part = parts[by];
    const patch = patchFor(pod, part);
    if (patch.length === 0) return { kind: 'nothing' };
    try {
      const written = await send(pod, part, patch);
      refusals.forget(key);
      lessened.delete(key);
      if (less !== undefined && written.kind === 'written') {
        announceRefusal(key, regardingPod(pod), less.refusal, part, announcer);
      }
      return written;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const isForGood = refusals.note(key, regardingPod(pod), error);
      if (!isForGood || by === parts.length - 1) throw error;
      lessened.set(key, { uid: pod.uid, by: by + 1, refusal: less?.refusal ?? error });
      return write(key, pod, placing, send);
    }
  }

  return {
    write,
    forget(key) {
      refusals.forget(key);
      lessened.delete(key);
    },
  };
}

/** What an Event about a pod is about. */
export function regardingPod({ namespace, name, uid }: Pod): Regarding {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}
