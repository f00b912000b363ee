import type { Operation } from '../../kit/json-patch.ts';
import { isRefusal } from '../../kube/errors.ts';
import type { Regarding } from '../../kube/events.ts';
import type { WriteResult } from '../../kube/writer.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { podPatch, releasePatch } from '../../placement/patch/patch.ts';
import type { PlacementIntent } from '../../placement/placing.ts';
import { type Announcer, announceRefusal } from '../announce.ts';
import type { Refusals } from '../refusals.ts';

/** The result of a write. `placing`: the part of the intent that was written. */
export type WrittenPlacing =
  | Exclude<WriteResult, { kind: 'written' }>
  | (Extract<WriteResult, { kind: 'written' }> & { readonly placing: PlacementIntent | undefined })
  | { readonly kind: 'nothing' };

/** Sends the patch of a pod. `placing`: the part of the intent that the patch contains. */
export type SendRelease = (
  pod: Pod,
  placing: PlacementIntent | undefined,
  patch: readonly Operation[],
) => Promise<Exclude<WrittenPlacing, { kind: 'nothing' }>>;

export type ReleaseOptions = {
  readonly refusals: Refusals;
  readonly announcer: Announcer;
};

/** Writes to pods the tolerations that they lack, and releases gated pods. */
export type Release = {
  /**
   * Writes what a pod lacks of an intent, and removes archaware's gate. Without an intent it removes only the gate. Throws the API
   * server's refusal: the gate stays, and the caller tries again. If the API server keeps refusing for a reason in the pod
   * itself, the gate is removed with a smaller write: without node affinity, then also without tolerations.
   */
  write(key: string, pod: Pod, placing: PlacementIntent | undefined, send: SendRelease): Promise<WrittenPlacing>;
  forget(key: string): void;
};

/** Returns the patch that adds to a pod what it lacks of an intent. */
function patchFor(pod: Pod, placing: PlacementIntent | undefined): Operation[] {
  return pod.gated ? releasePatch(pod, pod.gated, placing) : podPatch(pod, placing?.tolerations ?? []);
}

/** Returns the intent and, for a gated pod, the smaller intents to try if the API server keeps refusing it. */
function partsOf(pod: Pod, placing: PlacementIntent | undefined): (PlacementIntent | undefined)[] {
  if (pod.gated === undefined || placing === undefined) return [placing];
  return [placing, ...(placing.affinity === undefined ? [] : [{ ...placing, affinity: undefined }]), undefined];
}

/** Creates the release. */
export function createRelease({ refusals, announcer }: ReleaseOptions): Release {
  /** The pods of which a part of the intent was refused permanently: how many parts, and why. */
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

/** Returns the reference to a pod for an Event. */
export function regardingPod({ namespace, name, uid }: Pod): Regarding {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}
