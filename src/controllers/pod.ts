import type { Clock } from '../kube/clock.ts';
import type { Reconciler, Result } from '../kube/controller.ts';
import { isRefusal } from '../kube/errors.ts';
import type { EventRecorder, Regarding } from '../kube/events.ts';
import type { Store } from '../kube/store.ts';
import type { Writer, Written } from '../kube/writer.ts';
import { IGNORE_LABEL } from '../names.ts';
import { type Decision, decide } from '../placement/decide.ts';
import { type Namespace, skipPod } from '../placement/eligibility.ts';
import { type Operation, podPatch, releasePatch } from '../placement/patch.ts';
import { type Placing, placingFor, usesAffinity } from '../placement/placing.ts';
import { type Pod, podAfter } from '../placement/pod.ts';
import { decideAlike, settingsFor } from '../placement/policy.ts';
import type { Settings } from '../placement/settings.ts';
import { announce, announcePreferred, announceRefusal, announceSecrets, createAnnouncer } from './announce.ts';
import type { ImageSource } from './images.ts';
import { HELD_AGAIN_MS, imagesAwaited, OPEN_AGAIN_MS, type PlacementState } from './placement-state.ts';
import { createWaiting } from './waiting.ts';

export type PodControllerOptions = {
  readonly pods: Store<Pod>;
  readonly namespaces: Store<Namespace>;
  /** As of now: they may be exchanged at any time. */
  readonly settings: () => Settings;
  readonly clusterArchitectures: () => readonly string[];
  readonly images: ImageSource;
  readonly write: Writer;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
  /** The pod has had its turn, for the bootstrap. */
  readonly onDecided: (key: string) => void;
  /** A toleration was written this many seconds after the pod was created. */
  readonly onPlaced?: (seconds: number) => void;
};

/** Gathers what a pod's decision needs, decides, writes. */
export type PodController = {
  readonly reconcile: Reconciler;
  readonly states: ReadonlyMap<string, PlacementState>;
  /** The pods that wait for an image, by its canonical name. */
  waitingFor(image: string): readonly string[];
  /**
   * Whether an event shows nothing that is not decided: a status that changed, or the tolerations that we are writing at
   * this moment, whose event is often faster than the answer.
   */
  settled(key: string, now: Pod): boolean;
  /** Makes the next reconciliation decide anew: something besides the pod has changed. */
  invalidate(key: string): void;
  /** The pods whose set follows the cluster's architectures. */
  followers(): readonly string[];
};

/** Creates the pod's half of a controller; its queue is in `kube/controller`. */
export function createPodController(options: PodControllerOptions): PodController {
  const { pods, namespaces, clusterArchitectures, images, clock } = options;
  const states = new Map<string, PlacementState>();
  const firstSeen = new Map<string, { id: string; at: number }>();
  const writing = new Map<string, Basis>();
  const waiting = createWaiting();
  const announcer = createAnnouncer(options.events, clock);

  function forget(key: string): void {
    states.delete(key);
    firstSeen.delete(key);
    waiting.set(key, []);
    announcer.forget(key);
    options.onDecided(key);
  }

  function waitedMs(key: string, pod: Pod): number {
    const id = `${pod.uid} ${JSON.stringify(pod.images)}`;
    const seen = firstSeen.get(key);
    if (seen?.id === id) return clock.monotonic() - seen.at;
    firstSeen.set(key, { id, at: clock.monotonic() });
    return 0;
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const pod = pods.get(key);
    if (pod === undefined) {
      forget(key);
      return { outcome: 'unchanged' };
    }
    const namespace = namespaces.get(pod.namespace);
    // Its event is on the way: a pod cannot be without one.
    if (namespace === undefined) return { outcome: 'waiting', againInMs: 100 };
    const settings = settingsFor(options.settings(), { namespace, labels: pod.labels });
    const basis: Basis = { uid: pod.uid, read: whatIsRead(pod), settings };
    const state = states.get(key);
    if (state?.uid !== pod.uid) announcer.forget(key);
    else if (stands(state, pod, basis)) {
      if (state.decision.kind !== 'hold') return { outcome: 'unchanged' };
      // A tag may have been mended meanwhile: a pod that is held is decided anew from time to time.
      const sinceMs = clock.monotonic() - state.at;
      if (sinceMs < HELD_AGAIN_MS) return { outcome: 'held', againInMs: HELD_AGAIN_MS - sinceMs };
    }
    const skipped = skipPod(pod, namespace, settings);
    if (skipped !== undefined) {
      const isOver = skipped === 'deleting' || skipped === 'terminal';
      const left = pod.gated && !isOver ? await write(key, pod, settings, undefined, signal) : { kind: 'nothing' };
      if (left.kind === 'conflict') return { outcome: 'conflict' };
      states.set(key, { ...basis, final: true, at: clock.monotonic(), decision: { kind: 'skip', reason: skipped } });
      waiting.set(key, []);
      options.onDecided(key);
      return { outcome: left.kind === 'nothing' ? 'unchanged' : 'written' };
    }
    const decision = decide({
      template: pod,
      namespace: pod.namespace,
      settings,
      clusterArchitectures: clusterArchitectures(),
      namesOf: images.namesOf,
      answerOf: (image) => images.answer(image, pod.namespace, pod.pullSecrets),
      waitedMs: waitedMs(key, pod),
    });
    const problems = images.unusableSecrets(pod.namespace, pod.pullSecrets);
    announce(key, regarding(pod), pod, decision, settings, announcer);
    announceSecrets(key, regarding(pod), problems, announcer);
    if (pod.nodeName === undefined && usesAffinity(settings))
      announcePreferred(key, regarding(pod), namespace, announcer);
    const result = await act(key, pod, decision, settings, namespace, signal);
    if (result.outcome === 'conflict') return result;
    if (decision.kind !== 'wait' || decision.failed.length > 0) options.onDecided(key);
    return result;
  }

  async function act(
    key: string,
    pod: Pod,
    decision: Decision,
    settings: Settings,
    namespace: Namespace,
    signal: AbortSignal,
  ): Promise<Result> {
    const final = decision.kind === 'hold' || (decision.kind === 'place' && decision.unknown.length === 0);
    const settle = (now: Pod) => {
      states.set(key, { uid: now.uid, read: whatIsRead(now), settings, final, at: clock.monotonic(), decision });
      waiting.set(key, final ? [] : imagesAwaited(decision).map(images.canonicalOf));
    };
    switch (decision.kind) {
      case 'wait':
        settle(pod);
        return { outcome: 'waiting', againInMs: decision.againInMs };
      case 'hold':
        settle(pod);
        return { outcome: 'held', againInMs: HELD_AGAIN_MS };
      case 'place': {
        const againInMs = final ? undefined : OPEN_AGAIN_MS;
        const placing = placingFor(decision, pod, namespace, settings);
        const written = await write(key, pod, settings, placing, signal);
        switch (written.kind) {
          case 'conflict':
            return { outcome: 'conflict' };
          case 'gone':
            forget(key);
            return { outcome: 'unchanged' };
          case 'nothing':
          case 'recorded':
            settle(pod);
            return { outcome: written.kind === 'nothing' ? 'unchanged' : 'written', againInMs };
          case 'written': {
            const now = podAfter(pod, written.placing?.tolerations ?? [], written.object);
            pods.put(key, now);
            settle(now);
            if (pod.nodeName === undefined) options.onPlaced?.(Math.max(0, clock.wall() - pod.createdAt) / 1000);
            return { outcome: 'written', againInMs };
          }
          default:
            return written satisfies never;
        }
      }
      default:
        return decision satisfies never;
    }
  }

  /**
   * Writes what a pod lacks of a placing, and releases it where it holds our gate; no placing: the gate alone. Where the API
   * server refuses that for good the gate goes without it.
   */
  async function write(
    key: string,
    pod: Pod,
    settings: Settings,
    placing: Placing | undefined,
    signal: AbortSignal,
  ): Promise<WrittenPlacing> {
    const { gated } = pod;
    if (gated === undefined)
      return send(key, pod, settings, placing, podPatch(pod, placing?.tolerations ?? []), signal);
    const less = placing?.affinity === undefined ? [] : [{ ...placing, affinity: undefined }];
    let refused: Error | undefined;
    for (const part of placing === undefined ? [undefined] : [placing, ...less, undefined]) {
      try {
        const written = await send(key, pod, settings, part, releasePatch(pod, gated, part), signal);
        if (refused && written.kind === 'written') announceRefusal(key, regarding(pod), refused, part, announcer);
        return written;
      } catch (error) {
        if (!isRefusal(error)) throw error;
        refused ??= error;
      }
    }
    throw refused;
  }

  async function send(
    key: string,
    pod: Pod,
    settings: Settings,
    placing: Placing | undefined,
    patch: readonly Operation[],
    signal: AbortSignal,
  ): Promise<WrittenPlacing> {
    if (patch.length === 0) return { kind: 'nothing' };
    const { namespace, name } = pod;
    const target = { kind: 'Pod', namespace, name, action: pod.gated ? 'release' : 'tolerate' } as const;
    if (pod.generation !== undefined) {
      const read = whatIsRead({ ...pod, generation: pod.generation + 1 });
      writing.set(key, { uid: pod.uid, read, settings });
    }
    const written = await options.write(target, patch, signal).finally(() => writing.delete(key));
    return written.kind === 'written' ? { ...written, placing } : written;
  }

  return {
    reconcile,
    states,
    waitingFor: (image) => waiting.keysFor(image),
    settled(key, now) {
      const namespace = namespaces.get(now.namespace);
      if (namespace === undefined) return false;
      const settings = settingsFor(options.settings(), { namespace, labels: now.labels });
      const basis: Basis = { uid: now.uid, read: whatIsRead(now), settings };
      const state = states.get(key);
      if (state !== undefined && stands(state, now, basis)) return true;
      const ours = writing.get(key);
      return ours !== undefined && isSameBasis(ours, basis);
    },
    invalidate(key) {
      const state = states.get(key);
      if (state !== undefined) states.set(key, { ...state, final: false });
    },
    followers: () =>
      [...states].flatMap(([key, { decision }]) => (decision.kind === 'place' && decision.followsCluster ? key : [])),
  };
}

/** What became of a write, and what of the placing was in it. */
type WrittenPlacing =
  | Exclude<Written, { kind: 'written' }>
  | (Extract<Written, { kind: 'written' }> & { readonly placing: Placing | undefined })
  | { readonly kind: 'nothing' };

/** What a decision is made of: the pod as it was read, and the settings that applied to it. */
type Basis = Pick<PlacementState, 'uid' | 'read' | 'settings'>;

function isSameBasis(one: Basis, other: Basis): boolean {
  return one.uid === other.uid && one.read === other.read && decideAlike(one.settings, other.settings);
}

/** Whether a decision need not be made anew. Other settings change nothing for a pod that was placed and is bound. */
function stands(state: PlacementState, pod: Pod, basis: Basis): boolean {
  if (!state.final) return false;
  const isDone = state.decision.kind === 'place' && pod.nodeName !== undefined;
  return isSameBasis(state, isDone ? { ...basis, settings: state.settings } : basis);
}

/** Spec changes raise the generation (from 1.33 on); the rest of what decides stands beside it. */
function whatIsRead(pod: Pod): string {
  const spec = pod.generation ?? JSON.stringify([pod.images, pod.tolerations]);
  const place = pod.owner?.kind === 'DaemonSet' ? pod.nodeName : '';
  return [spec, pod.phase, pod.deleting, place, pod.statement, pod.labels[IGNORE_LABEL]].join('|');
}

function regarding(pod: Pod): Regarding {
  return { apiVersion: 'v1', kind: 'Pod', namespace: pod.namespace, name: pod.name, uid: pod.uid };
}
