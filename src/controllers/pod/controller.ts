import type { Clock } from '../../kit/clock.ts';
import type { Reconciler, Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { Writer } from '../../kube/writer.ts';
import type { Decision, Placement } from '../../placement/decide.ts';
import { type Namespace, type SkipReason, skipPod } from '../../placement/eligibility.ts';
import { type Pod, podAfter } from '../../placement/objects/pod.ts';
import { type PlacementIntent, placingFor, usesAffinity } from '../../placement/placing.ts';
import { settingsFor } from '../../placement/policy.ts';
import type { Settings } from '../../placement/settings.ts';
import { announce, announcePreferred, announceSecrets, createAnnouncer } from '../announce.ts';
import { createAnswered } from '../answered.ts';
import type { ImageSource } from '../images.ts';
import { HELD_AGAIN_MS, OPEN_AGAIN_MS, type PlacementState } from '../placement-state.ts';
import { createRefusals } from '../refusals.ts';
import { createWaiting, type Due } from '../waiting.ts';
import { createBacklog } from './backlog.ts';
import { type Expected, isFinal, type Reading, stands, whatIsRead } from './basis.ts';
import { decidePod } from './decision.ts';
import { createPodMemory } from './memory.ts';
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
  const { pods, namespaces, images, clock } = options;
  const answered = createAnswered(pods, clock);
  const waiting = createWaiting(clock);
  const memory = createPodMemory({ pods, images, answered, waiting, clock });
  const announcer = createAnnouncer(options.events, clock);
  const undone = createUndone({ announcer, clock });
  const refusals = createRefusals({ announcer, clock, onRefused: options.onRefused });
  const release = createRelease({ refusals, announcer });
  const backlog = createBacklog(clock, options.onTurn);
  const decisionParts = { ...options, backlog, waitedMs: memory.waitedMs };

  function forget(key: string): void {
    for (const each of [memory, announcer, undone, release, backlog, answered]) each.forget(key);
    options.onDecided(key);
  }

  /** What applies to a pod; undefined until the watch shows its namespace. */
  function readingOf(pod: Pod): { readonly namespace: Namespace; readonly reading: Reading } | undefined {
    const namespace = namespaces.get(pod.namespace);
    if (namespace === undefined) return undefined;
    const settings = settingsFor(options.settings(), { namespace, labels: pod.labels });
    return { namespace, reading: { uid: pod.uid, read: whatIsRead(pod), settings } };
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const pod = pods.get(key);
    if (pod === undefined) {
      forget(key);
      return { outcome: 'unchanged' };
    }
    const found = readingOf(pod);
    // The event of its namespace is on the way, and brings its pods back: a pod cannot be without one.
    if (found === undefined) return { outcome: 'waiting' };
    // The watch has yet to show what the last write made of it; its event brings the key back.
    const behindMs = answered.behindMs(key, pod);
    if (behindMs > 0) return { outcome: 'unchanged', againInMs: behindMs };
    const { namespace, reading } = found;
    const { settings } = reading;
    const state = memory.states.get(key);
    if (state !== undefined && state.uid !== pod.uid) {
      for (const each of [announcer, undone, release, backlog]) each.forget(key);
    } else if (state !== undefined && stands(state, pod, reading)) {
      if (state.decision.kind !== 'hold') return { outcome: 'unchanged' };
      // A tag may have been repaired meanwhile: a pod that is held is decided again from time to time.
      const sinceMs = clock.monotonic() - state.at;
      if (sinceMs < HELD_AGAIN_MS) return { outcome: 'held', againInMs: HELD_AGAIN_MS - sinceMs };
    }
    const skipped = skipPod(pod, namespace, settings);
    if (skipped !== undefined) return leaveAlone(key, pod, reading, skipped, signal);
    const decision = decidePod(decisionParts, key, pod, settings, state);
    report(key, pod, decision, settings, namespace);
    const result = await act(key, pod, decision, settings, namespace, signal);
    if (result.outcome === 'conflict') return result;
    if (decision.kind !== 'wait' || decision.failed.length > 0) options.onDecided(key);
    return result;
  }

  /** A pod that is left alone only loses the gate, so that it can be scheduled as its author wished. */
  async function leaveAlone(
    key: string,
    pod: Pod,
    reading: Reading,
    reason: SkipReason,
    signal: AbortSignal,
  ): Promise<Result> {
    const isOver = reason === 'deleting' || reason === 'terminal';
    const send = sender(key, reading.settings, signal);
    const left = pod.gated && !isOver ? await release.write(key, pod, undefined, send) : { kind: 'nothing' };
    if (left.kind === 'conflict') return { outcome: 'conflict' };
    memory.rememberSkipped(key, reading, reason);
    options.onDecided(key);
    return { outcome: left.kind === 'nothing' ? 'unchanged' : 'written' };
  }

  function report(key: string, pod: Pod, decision: Decision, settings: Settings, namespace: Namespace): void {
    const problems = images.unusableSecrets(pod.namespace, pod.pullSecrets);
    announce(key, regardingPod(pod), pod, decision, settings, announcer);
    announceSecrets(key, regardingPod(pod), problems, announcer);
    if (pod.nodeName === undefined && usesAffinity(settings)) {
      announcePreferred(key, regardingPod(pod), pod, namespace, announcer);
    }
  }

  function remember(
    key: string,
    pod: Pod,
    decision: Decision,
    settings: Settings,
    wrote?: PlacementState['wrote'],
  ): void {
    memory.remember(key, pod, decision, settings, wrote);
    if (isFinal(decision)) backlog.forget(key);
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
    const waitMs = undone.check(key, pod, memory.states.get(key), placing.tolerations);
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

  /** Sends a patch. */
  function sender(key: string, settings: Settings, signal: AbortSignal): SendRelease {
    return async (pod, placing, patch) => {
      const { namespace, name } = pod;
      const target = { kind: 'Pod', namespace, name, action: pod.gated ? 'release' : 'tolerate' } as const;
      const write = () => options.write(target, patch, signal);
      const written = await (pod.generation === undefined
        ? write()
        : memory.whileWriting(key, expectedOf(pod, pod.generation, settings, placing), write));
      return written.kind === 'written' ? { ...written, placing } : written;
    };
  }

  return {
    reconcile,
    states: memory.states,
    imageSettled: waiting.settled,
    settled(key, now) {
      const found = readingOf(now);
      return found !== undefined && memory.settled(key, now, found.reading);
    },
    invalidate: memory.invalidate,
    followers: memory.followers,
    end: backlog.end,
    contested: undone.count,
  };
}

/** What the watch will show of a pod once it is written. */
function expectedOf(pod: Pod, generation: number, settings: Settings, placing: PlacementIntent | undefined): Expected {
  const read = whatIsRead({ ...pod, gated: undefined, generation: generation + 1 });
  return { uid: pod.uid, read, settings, tolerations: placing?.tolerations ?? [] };
}
