import type { Clock } from '../../kit/clock.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { Decision } from '../../placement/decide.ts';
import type { SkipReason } from '../../placement/eligibility.ts';
import { createShared } from '../../placement/objects/equal-values.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import type { Settings } from '../../placement/settings.ts';
import type { Answered } from '../answered.ts';
import type { ImageSource } from '../images.ts';
import { keptDecision } from '../kept-decision.ts';
import { imagesAwaited, type PlacementState } from '../placement-state.ts';
import type { Waiting } from '../waiting.ts';
import {
  type Expected,
  follows,
  hasTolerations,
  isFinal,
  isSameBasis,
  isStillValid,
  type Reading,
  whatIsRead,
} from './basis.ts';

/** The memory of a term: for each pod the last decision, the write under way, and the time since it waits for images. */
export type PodMemory = {
  readonly states: ReadonlyMap<string, PlacementState>;
  /** Returns the milliseconds since the pod was first decided with these images. */
  waitedMs(key: string, pod: Pod): number;
  /**
   * Records a decision whose write, if it needed one, is done. `wrote`: the tolerations that the pod must have from now on. False
   * if the ends of its lookups will not queue the pod, because there is no room to remember their names.
   */
  remember(key: string, pod: Pod, decision: Decision, settings: Settings, wrote?: PlacementState['wrote']): boolean;
  /** Records that the pod was skipped. */
  rememberSkipped(key: string, reading: Reading, reason: SkipReason): void;
  forget(key: string): void;
  /** Remembers until {@link writeEnds} what the pod will look like after a write: its event often arrives before the answer. */
  writeBegins(key: string, after: Expected): void;
  writeEnds(key: string): void;
  /** Forgets the written tolerations once the pod, as it was seen last, has them. */
  confirm(key: string, pod: Pod): void;
  /** Whether the event of a pod needs no reconciliation: nothing that decides has changed, or it shows the write under way. */
  isUpToDate(key: string, now: Pod, reading: Reading): boolean;
  /** Makes the next reconciliation decide again, because something other than the pod has changed. */
  invalidate(key: string): void;
  /** Returns the pods whose architectures follow the cluster's. */
  followers(): readonly string[];
};

/** Bytes of what pods have in common: enough for the templates of nearly every cluster. */
const MOST_SHARED = 4 * 1024 * 1024;

/** Returns a value that is equal only for equal images. The list of a large pod is not kept, so that is its digest. */
function imagesOf({ large, images }: Pod): Pod['images'] | string {
  return large ?? images;
}

/** Creates an empty memory. It has an entry for every pod, so what equal pods have in common is kept once. */
export function createPodMemory(parts: {
  readonly pods: Store<Pod>;
  readonly images: Pick<ImageSource, 'canonicalOf'>;
  readonly answered: Answered;
  readonly waiting: Waiting;
  readonly clock: Clock;
}): PodMemory {
  const { pods, images, answered, waiting, clock } = parts;
  const states = new Map<string, PlacementState>();
  const firstSeen = new Map<
    string,
    { readonly uid: string; readonly images: Pod['images'] | string; readonly at: number }
  >();
  /** The pods to look at when an architecture joins. */
  const following = new Set<string>();
  /** The writes under way. */
  const writing = new Map<string, Expected>();
  const share = createShared({ most: MOST_SHARED });
  const time = () => Math.floor(clock.monotonic());

  /** Nothing can remove the tolerations that the watch has shown. To forget them saves memory, and a stub never shows them. */
  function confirm(key: string, pod: Pod): void {
    const state = states.get(key);
    if (state?.wrote === undefined || answered.behindMs(key, pod) > 0) return;
    const { uid, read, settings, final, at, decision } = state;
    states.set(key, { uid, read, settings, final, at, decision });
  }

  return {
    states,
    waitedMs(key, pod) {
      const { uid } = pod;
      const now = imagesOf(pod);
      const seen = firstSeen.get(key);
      // Pods share equal lists, so nearly always one look is enough.
      const isSame = seen?.uid === uid && (seen.images === now || JSON.stringify(seen.images) === JSON.stringify(now));
      if (isSame) return clock.monotonic() - seen.at;
      firstSeen.set(key, { uid, images: now, at: clock.monotonic() });
      return 0;
    },
    remember(key, pod, decision, settings, wrote = []) {
      const final = isFinal(decision);
      const state: PlacementState = {
        uid: pod.uid,
        read: share(whatIsRead(pod)),
        settings,
        final,
        at: time(),
        decision: share(keptDecision(decision)),
      };
      states.set(key, wrote.length === 0 ? state : { ...state, wrote });
      if (follows(state, pod)) following.add(key);
      else following.delete(key);
      if (final) firstSeen.delete(key);
      return waiting.set(key, final ? [] : share(imagesAwaited(decision).map(images.canonicalOf)));
    },
    rememberSkipped(key, { uid, read, settings }, reason) {
      const decision = share({ kind: 'skip', reason } as const);
      states.set(key, { uid, read: share(read), settings, final: true, at: time(), decision });
      following.delete(key);
      waiting.set(key, []);
    },
    forget(key) {
      states.delete(key);
      firstSeen.delete(key);
      following.delete(key);
      waiting.set(key, []);
    },
    writeBegins(key, after) {
      writing.set(key, after);
    },
    writeEnds(key) {
      writing.delete(key);
    },
    confirm,
    isUpToDate(key, now, reading) {
      const state = states.get(key);
      if (state !== undefined && isStillValid(state, now, reading)) {
        confirm(key, now);
        return true;
      }
      const expected = writing.get(key);
      return expected !== undefined && isSameBasis(expected, reading) && hasTolerations(now, expected.tolerations);
    },
    invalidate(key) {
      const state = states.get(key);
      if (state !== undefined) states.set(key, { ...state, final: false });
    },
    followers() {
      for (const key of following) {
        const state = states.get(key);
        // Since the decision, the pod may have been bound.
        if (state === undefined || !follows(state, pods.get(key))) following.delete(key);
      }
      return [...following];
    },
  };
}
