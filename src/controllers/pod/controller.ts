import type { Clock } from '../../kit/clock.ts';
import type { Reconciler, Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { Writer } from '../../kube/writer.ts';
import { type Decision, decide, type Placement, standing } from '../../placement/decide.ts';
import { type Namespace, skipPod } from '../../placement/eligibility.ts';
import { type Pod, podAfter } from '../../placement/objects/pod.ts';
import { type PlacementIntent, placingFor, usesAffinity, usesTaints } from '../../placement/placing.ts';
import { settingsFor } from '../../placement/policy.ts';
import type { Settings } from '../../placement/settings.ts';
import { overPlaced, standingArchitectures } from '../../placement/standing.ts';
import { announce, announcePreferred, announceSecrets, createAnnouncer } from '../announce.ts';
import { createAnswered } from '../answered.ts';
import type { ImageSource } from '../images.ts';
import { HELD_AGAIN_MS, imagesAwaited, OPEN_AGAIN_MS, type PlacementState } from '../placement-state.ts';
import { createRefusals } from '../refusals.ts';
import { createWaiting, type Due } from '../waiting.ts';
import { createBacklog } from './backlog.ts';
import {
  type Expected,
  follows,
  isFinal,
  isSameBasis,
  isStanding,
  type Reading,
  shows,
  stands,
  whatIsRead,
} from './basis.ts';
import { createRelease, regardingPod, type SendRelease } from './release.ts';
import { createUndone } from './undone.ts';

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
  /** Whether images of bound pods are asked about slowly, as they run; not where everything is to be known at once. */
  readonly isPaced: boolean;
  /** The pod is to be reconciled: its turn to have its images looked up has come. */
  readonly onTurn: (key: string) => void;
  /** The pod has had one outcome, for the bootstrap. */
  readonly onDecided: (key: string) => void;
  /** A toleration was written this many seconds after the pod was created. */
  readonly onPlaced?: (seconds: number) => void;
  /** The API server refused a write. */
  readonly onRefused?: () => void;
};

/** Gathers what a pod's decision needs, decides, writes. */
export type PodController = {
  readonly reconcile: Reconciler;
  readonly states: ReadonlyMap<string, PlacementState>;
  /** The lookup of an image, by its canonical name, has ended: the pods to look at again, and when. */
  imageSettled(image: string): readonly Due[];
  /**
   * Whether an event shows nothing that is not decided: a status that changed, or what archaware is writing at this moment,
   * whose event is often faster than the answer.
   */
  settled(key: string, now: Pod): boolean;
  /** Makes the next reconciliation decide again: something other than the pod has changed. */
  invalidate(key: string): void;
  /** The pods whose set follows the cluster's architectures. */
  followers(): readonly string[];
  /** Pods whose tolerations another writer keeps taking out. */
  contested(): number;
  /** The term is over: no pod gets a turn any more. */
  end(): void;
};

/** Creates the pod's half of a controller; its queue is in `kube/controller`. */
export function createPodController(options: PodControllerOptions): PodController {
  const { pods, namespaces, clusterArchitectures, images, clock } = options;
  const states = new Map<string, PlacementState>();
  const firstSeen = new Map<string, { id: string; at: number }>();
  /** What is being written, until the answer. */
  const writing = new Map<string, Expected>();
  const answered = createAnswered(pods, clock);
  const waiting = createWaiting(clock);
  const announcer = createAnnouncer(options.events, clock);
  const undone = createUndone({ announcer, clock });
  const refusals = createRefusals({ announcer, clock, onRefused: options.onRefused });
  const release = createRelease({ refusals, announcer });
  const backlog = createBacklog(clock, options.onTurn);

  function forget(key: string): void {
    for (const memory of [states, firstSeen]) memory.delete(key);
    waiting.set(key, []);
    for (const memory of [announcer, undone, release, backlog, answered]) memory.forget(key);
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
    // Its event is on the way, and brings its pods back: a pod cannot be without one.
    if (namespace === undefined) return { outcome: 'waiting' };
    // The watch has yet to show what the last write made of it; its event brings the key back.
    const behindMs = answered.behindMs(key, pod);
    if (behindMs > 0) return { outcome: 'unchanged', againInMs: behindMs };
    const settings = settingsFor(options.settings(), { namespace, labels: pod.labels });
    const basis: Reading = { uid: pod.uid, read: whatIsRead(pod), settings };
    const state = states.get(key);
    if (state !== undefined && state.uid !== pod.uid) {
      for (const memory of [announcer, undone, release, backlog]) memory.forget(key);
    } else if (state !== undefined && stands(state, pod, basis)) {
      if (state.decision.kind !== 'hold') return { outcome: 'unchanged' };
      // A tag may have been repaired meanwhile: a pod that is held is decided again from time to time.
      const sinceMs = clock.monotonic() - state.at;
      if (sinceMs < HELD_AGAIN_MS) return { outcome: 'held', againInMs: HELD_AGAIN_MS - sinceMs };
    }
    const skipped = skipPod(pod, namespace, settings);
    if (skipped !== undefined) {
      const isOver = skipped === 'deleting' || skipped === 'terminal';
      const send = sender(key, settings, signal);
      const left = pod.gated && !isOver ? await release.write(key, pod, undefined, send) : { kind: 'nothing' };
      if (left.kind === 'conflict') return { outcome: 'conflict' };
      states.set(key, { ...basis, final: true, at: clock.monotonic(), decision: { kind: 'skip', reason: skipped } });
      waiting.set(key, []);
      options.onDecided(key);
      return { outcome: left.kind === 'nothing' ? 'unchanged' : 'written' };
    }
    const decision = decisionFor(key, pod, settings, state);
    const problems = images.unusableSecrets(pod.namespace, pod.pullSecrets);
    announce(key, regardingPod(pod), pod, decision, settings, announcer);
    announceSecrets(key, regardingPod(pod), problems, announcer);
    if (pod.nodeName === undefined && usesAffinity(settings)) {
      announcePreferred(key, regardingPod(pod), pod, namespace, announcer);
    }
    const result = await act(key, pod, decision, settings, namespace, signal);
    if (result.outcome === 'conflict') return result;
    if (decision.kind !== 'wait' || decision.failed.length > 0) options.onDecided(key);
    return result;
  }

  function decisionFor(key: string, pod: Pod, settings: Settings, before: PlacementState | undefined): Decision {
    const isFirst = before === undefined || before.uid !== pod.uid || isStanding(before, settings);
    const placed = isFirst ? standingArchitectures(pod, settings, images.namesOf) : undefined;
    // It is where it is, and without taints nothing can be given to it any more.
    const isDone = pod.nodeName !== undefined && !usesTaints(settings);
    const isToldToAsk = placed !== undefined && before !== undefined && !before.final;
    if ((placed !== undefined && !isToldToAsk) || isDone) return standing(placed ?? [], undefined);
    const { namespace, pullSecrets } = pod;
    const ask = (image: Pod['images'][number]) => images.answer(image, namespace, pullSecrets);
    const recall = (image: Pod['images'][number]) => images.recall(image, namespace, pullSecrets);
    const decision = decide({
      template: pod,
      namespace,
      settings,
      clusterArchitectures: clusterArchitectures(),
      namesOf: images.namesOf,
      answerOf: pod.nodeName === undefined || !options.isPaced ? ask : backlog.answers(key, recall, ask),
      waitedMs: waitedMs(key, pod),
    });
    return overPlaced(decision, pod, placed);
  }

  async function act(
    key: string,
    pod: Pod,
    decision: Decision,
    settings: Settings,
    namespace: Namespace,
    signal: AbortSignal,
  ): Promise<Result> {
    switch (decision.kind) {
      case 'wait':
        remember(key, pod, decision, settings);
        return { outcome: 'waiting', againInMs: decision.againInMs };
      case 'hold':
        remember(key, pod, decision, settings);
        return { outcome: 'held', againInMs: HELD_AGAIN_MS };
      case 'place':
        return place(key, pod, decision, settings, placingFor(decision, pod, namespace, settings), signal);
      default:
        return decision satisfies never;
    }
  }

  async function place(
    key: string,
    pod: Pod,
    decision: Placement,
    settings: Settings,
    placing: PlacementIntent,
    signal: AbortSignal,
  ): Promise<Result> {
    const againInMs = isFinal(decision) ? undefined : OPEN_AGAIN_MS;
    const waitMs = undone.check(key, pod, states.get(key), placing.tolerations);
    if (waitMs > 0) return { outcome: 'conflict', againInMs: waitMs };
    const written = await release.write(key, pod, placing, sender(key, settings, signal));
    switch (written.kind) {
      case 'conflict':
        return { outcome: 'conflict' };
      case 'gone':
        forget(key);
        return { outcome: 'unchanged' };
      case 'nothing':
      case 'recorded':
        remember(key, pod, decision, settings);
        return { outcome: written.kind === 'nothing' ? 'unchanged' : 'written', againInMs };
      case 'written': {
        const tolerations = written.placing?.tolerations ?? [];
        const now = podAfter(pod, tolerations, written.object);
        remember(key, now, decision, settings, tolerations);
        // Nothing came of it: another webhook took it out of the very same write, and no event will follow.
        if (now.resourceVersion === pod.resourceVersion) return { outcome: 'conflict' };
        answered.set(key, { uid: pod.uid, resourceVersion: now.resourceVersion });
        if (pod.nodeName === undefined) options.onPlaced?.(Math.max(0, clock.wall() - pod.createdAt) / 1000);
        return { outcome: 'written', againInMs };
      }
      default:
        return written satisfies never;
    }
  }

  function remember(
    key: string,
    { uid, ...pod }: Pod,
    decision: Decision,
    settings: Settings,
    wrote?: PlacementState['wrote'],
  ): void {
    const final = isFinal(decision);
    const read = whatIsRead({ uid, ...pod });
    const made = wrote === undefined || wrote.length === 0 ? {} : { wrote };
    states.set(key, { uid, read, settings, final, at: clock.monotonic(), decision, ...made });
    waiting.set(key, final ? [] : imagesAwaited(decision).map(images.canonicalOf));
    if (!final) return;
    backlog.forget(key);
    firstSeen.delete(key);
  }

  /** The watch shows what was written, which nothing can take from a pod any more: there are many pods, so it is forgotten. */
  function shown(key: string, { wrote, ...state }: PlacementState, pod: Pod): void {
    if (wrote === undefined || answered.behindMs(key, pod) > 0) return;
    states.set(key, state);
  }

  /** Sends a patch, and remembers meanwhile what the pod will look like: the event is often faster than the answer. */
  function sender(key: string, settings: Settings, signal: AbortSignal): SendRelease {
    return async (pod, placing, patch) => {
      const { namespace, name } = pod;
      const target = { kind: 'Pod', namespace, name, action: pod.gated ? 'release' : 'tolerate' } as const;
      if (pod.generation !== undefined) {
        const read = whatIsRead({ ...pod, gated: undefined, generation: pod.generation + 1 });
        writing.set(key, { uid: pod.uid, read, settings, tolerations: placing?.tolerations ?? [] });
      }
      const written = await options.write(target, patch, signal).finally(() => writing.delete(key));
      return written.kind === 'written' ? { ...written, placing } : written;
    };
  }

  return {
    reconcile,
    states,
    imageSettled: waiting.settled,
    settled(key, now) {
      const namespace = namespaces.get(now.namespace);
      if (namespace === undefined) return false;
      const settings = settingsFor(options.settings(), { namespace, labels: now.labels });
      const basis: Reading = { uid: now.uid, read: whatIsRead(now), settings };
      const state = states.get(key);
      if (state !== undefined && stands(state, now, basis)) {
        shown(key, state, now);
        return true;
      }
      const ours = writing.get(key);
      return ours !== undefined && isSameBasis(ours, basis) && shows(now, ours.tolerations);
    },
    invalidate(key) {
      const state = states.get(key);
      if (state !== undefined) states.set(key, { ...state, final: false });
    },
    followers: () => [...states].flatMap(([key, state]) => (follows(state, pods.get(key)) ? key : [])),
    end: backlog.end,
    contested: undone.count,
  };
}
