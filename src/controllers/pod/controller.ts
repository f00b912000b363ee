import type { Clock } from '../../kit/clock.ts';
import type { Reconciler, Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { Writer } from '../../kube/writer.ts';
import { contradictionOf } from '../../placement/contradiction.ts';
import type { Decision, Placement } from '../../placement/decide.ts';
import { type SkipReason, skipPod } from '../../placement/eligibility.ts';
import { isStub } from '../../placement/objects/large.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import { type Pod, podAfter } from '../../placement/objects/pod.ts';
import { onlyObserves, type PlacementIntent, placingFor, placingText, usesAffinity } from '../../placement/placing.ts';
import { settingsFor } from '../../placement/policy.ts';
import { decisionNote } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import { readPodSubject, type Subject } from '../../placement/subject.ts';
import { announce, announceGate, announcePreferred, announceSecrets, createAnnouncer } from '../announce.ts';
import { createAnswered } from '../answered.ts';
import type { ImageSource } from '../images.ts';
import { createLargeTurns, WAITS_FOR_LARGE_TURN } from '../large-turns.ts';
import { HELD_AGAIN_MS, OPEN_AGAIN_MS, type PlacementState } from '../placement-state.ts';
import { createRefusals } from '../refusals.ts';
import { createRefusedEntries } from '../refused-entries.ts';
import { createWaiting, type Due, NO_ROOM_AGAIN_MS } from '../waiting.ts';
import { createBacklog } from './backlog.ts';
import { type Expected, isFinal, isStillValid, type Reading, whatIsRead } from './basis.ts';
import { decidePod } from './decision.ts';
import { createPodMemory } from './memory.ts';
import { createOutlooks } from './outlook.ts';
import { createRelease, regardingPod, type SendRelease, type WrittenPlacing } from './release.ts';
import { createUndone } from './undone.ts';

export type PodControllerOptions = {
  readonly pods: Store<Pod>;
  readonly namespaces: Store<Namespace>;
  /** Returns the present settings; a reload may replace them at any time. */
  readonly settings: () => Settings;
  readonly clusterArchitectures: () => readonly string[];
  readonly images: ImageSource;
  readonly write: Writer;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
  /**
   * Whether images of bound pods are looked up slowly, because these pods run already. False for `plan`, which needs all answers.
   */
  readonly isPaced: boolean;
  /** Reads a pod of which too little is kept; undefined if it is gone. */
  readonly wholePod: (kept: Pod, signal: AbortSignal) => Promise<Pod | undefined>;
  /** Called when the turn of a bound pod for lookups, or of a large pod, has come. The pod must then be reconciled. */
  readonly onTurn: (key: string) => void;
  /** Called when the pod was decided, for the bootstrap. */
  readonly onDecided: (key: string) => void;
  /** Called when a pod was placed, with the seconds since its creation. */
  readonly onPlaced?: (seconds: number) => void;
  /** Called when the API server refused a write. */
  readonly onRefused?: () => void;
  /** Returns when a write of any object last succeeded, in milliseconds on the monotonic clock. Absent: not known. */
  readonly lastWriteMs?: (() => number | undefined) | undefined;
};

/** The pod controller: gathers the input of a pod's decision, decides, writes. */
export type PodController = {
  readonly reconcile: Reconciler;
  readonly states: ReadonlyMap<string, PlacementState>;
  /** Returns the pods to reconcile again, and when, after the lookup of an image (its canonical name) has ended. */
  lookupEnded(image: string): readonly Due[];
  /**
   * Whether the event of a pod needs no reconciliation: nothing that decides has changed, or the event shows archaware's own
   * write. Such an event often arrives before the answer to the write.
   */
  isUpToDate(key: string, now: Pod): boolean;
  /** Makes the next reconciliation decide again, because something other than the pod has changed. */
  invalidate(key: string): void;
  /** Returns the pods whose architectures follow the cluster's. */
  followers(): readonly string[];
  /** Counts the pods whose tolerations another writer keeps removing. */
  contested(): number;
  /** Ends the backlog when the term is over. */
  end(): void;
};

/** Creates the pod controller. `kube/controller` owns its queue and its workers. */
export function createPodController(options: PodControllerOptions): PodController {
  const { pods, namespaces, images, clock } = options;
  const answered = createAnswered(pods, clock);
  const waiting = createWaiting(clock);
  const memory = createPodMemory({ pods, images, answered, waiting, clock });
  const announcer = createAnnouncer(options.events, clock);
  const outlooks = createOutlooks(clock);
  const undone = createUndone({ announcer, clock });
  const refusals = createRefusals({ ...options, announcer });
  const release = createRelease({ refusals, entries: createRefusedEntries(clock), announcer });
  const backlog = createBacklog(clock, options.onTurn);
  const larges = createLargeTurns(clock, options.isPaced, options.onTurn);
  const decisionParts = { ...options, backlog, waitedMs: memory.waitedMs };

  function forget(key: string): void {
    for (const each of [memory, announcer, outlooks, undone, release, backlog, larges, answered]) each.forget(key);
    options.onDecided(key);
  }

  /** Returns the namespace and the input of a pod's decision; undefined until the watch shows the namespace. */
  function readingOf(pod: Pod): { readonly namespace: Namespace; readonly reading: Reading } | undefined {
    const namespace = namespaces.get(pod.namespace);
    if (namespace === undefined) return undefined;
    const settings = settingsOf(pod, namespace);
    return { namespace, reading: { uid: pod.uid, read: whatIsRead(pod), settings } };
  }

  /** The labels of a stub are not there: the settings of the last decision count until something queues the pod. */
  function settingsOf(pod: Pod, namespace: Namespace): Settings {
    const before = isStub(pod) ? memory.states.get(`${pod.namespace}/${pod.name}`) : undefined;
    return before?.settings ?? settingsFor(options.settings(), { namespace, labels: pod.labels });
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const pod = pods.get(key);
    if (pod === undefined) {
      forget(key);
      return { outcome: 'unchanged' };
    }
    if (pod.large !== undefined) return reconcileLarge(key, pod, signal);
    larges.forget(key);
    return reconcilePod(key, pod, signal);
  }

  /** Reads a pod that is too large to keep when its turn has come, decides about it, and forgets it. */
  async function reconcileLarge(key: string, kept: Pod, signal: AbortSignal): Promise<Result> {
    const line = kept.nodeName !== undefined ? 'bound' : memory.states.has(key) ? 'again' : 'new';
    if (!larges.begin(key, line)) return WAITS_FOR_LARGE_TURN;
    try {
      const pod = await options.wholePod(kept, signal);
      // The event of its end follows, or that of the other pod with its name.
      return pod === undefined ? { outcome: 'unchanged' } : await reconcilePod(key, pod, signal);
    } finally {
      larges.end();
    }
  }

  async function reconcilePod(key: string, pod: Pod, signal: AbortSignal): Promise<Result> {
    const found = readingOf(pod);
    // Every pod has a namespace, so the event of the namespace will follow and queue its pods.
    if (found === undefined) return { outcome: 'waiting' };
    // The watch does not show the last write yet. The event of that write queues the pod again.
    const behindMs = answered.behindMs(key, pod);
    if (behindMs > 0) return { outcome: 'unchanged', againInMs: behindMs };
    const { namespace, reading } = found;
    const { settings } = reading;
    let state = memory.states.get(key);
    if (state !== undefined && state.uid !== pod.uid) {
      for (const each of [announcer, outlooks, undone, release, backlog]) each.forget(key);
    } else if (state !== undefined && isStillValid(state, pod, reading)) {
      const { decision } = state;
      memory.confirm(key, pod);
      if (decision.kind !== 'hold' && !fitsNowhere(pod, decision, settings)) return { outcome: 'unchanged' };
      // Somebody may have pushed a better image under the same tag, so a pod that no node can run is decided again from time to time.
      const againInMs = HELD_AGAIN_MS - (clock.monotonic() - state.at);
      if (againInMs > 0 && decision.kind === 'hold') return held(pod, decision, settings, againInMs);
      if (againInMs > 0) return { outcome: 'unchanged', againInMs };
      // Not final: so the images are asked for even if an earlier process placed the pod.
      state = { ...state, final: false };
    }
    const skipped = skipPod(pod, namespace, settings);
    if (skipped !== undefined) return leaveAlone(key, pod, reading, skipped, signal);
    const subject = readPodSubject(pod, namespace, settings);
    const decision = decidePod(decisionParts, key, pod, settings, subject, state);
    report(key, pod, decision, settings, namespace);
    const result = await act(key, pod, decision, settings, subject, signal);
    if (result.outcome === 'conflict') return result;
    if (decision.kind !== 'wait' || decision.failed.length > 0) options.onDecided(key);
    return result;
  }

  /** Handles a skipped pod: only the gate is removed, so that the pod can be scheduled as its author wrote it. */
  async function leaveAlone(
    key: string,
    pod: Pod,
    reading: Reading,
    reason: SkipReason,
    signal: AbortSignal,
  ): Promise<Result> {
    const isOver = reason === 'deleting' || reason === 'terminal';
    if (!isOver) announceGate(key, regardingPod(pod), pod, reading.settings, announcer);
    const left: WrittenPlacing =
      pod.gated && !isOver ? await write(key, pod, undefined, reading.settings, signal) : { kind: 'nothing' };
    if (left.kind === 'conflict') return { outcome: 'conflict' };
    if (left.kind === 'written') answered.set(key, podAfter(pod, [], left.object));
    memory.rememberSkipped(key, reading, reason);
    options.onDecided(key);
    return { outcome: left.kind === 'nothing' ? 'unchanged' : 'written' };
  }

  function report(key: string, pod: Pod, decision: Decision, settings: Settings, namespace: Namespace): void {
    const problems = images.unusableSecrets(pod.namespace, pod.pullSecrets);
    const outlook = outlooks.of(key, pod, decision, settings);
    announce(key, regardingPod(pod), pod, decision, settings, announcer, outlook);
    announceSecrets(key, regardingPod(pod), problems, announcer);
    announceGate(key, regardingPod(pod), pod, settings, announcer);
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
  ): boolean {
    if (isFinal(decision)) backlog.forget(key);
    return memory.remember(key, pod, decision, settings, wrote);
  }

  function act(
    key: string,
    pod: Pod,
    decision: Decision,
    settings: Settings,
    subject: Subject,
    signal: AbortSignal,
  ): Result | Promise<Result> {
    switch (decision.kind) {
      case 'wait': {
        const isReported = remember(key, pod, decision, settings);
        return { outcome: 'waiting', againInMs: isReported ? decision.againInMs : NO_ROOM_AGAIN_MS };
      }
      case 'hold':
        remember(key, pod, decision, settings);
        return held(pod, decision, settings, HELD_AGAIN_MS);
      case 'place':
        return place(key, pod, decision, settings, placingFor(decision, subject), signal);
      default:
        return decision satisfies never;
    }
  }

  function held({ os }: Pod, decision: Decision, { schedulable }: Settings, againInMs: number): Result {
    return { outcome: 'held', againInMs, detail: decisionNote(decision, os, schedulable) };
  }

  async function place(
    key: string,
    pod: Pod,
    decision: Placement,
    settings: Settings,
    placing: PlacementIntent,
    signal: AbortSignal,
  ): Promise<Result> {
    const isDone = isFinal(decision) && !fitsNowhere(pod, decision, settings);
    const againInMs = isDone ? undefined : isFinal(decision) ? HELD_AGAIN_MS : OPEN_AGAIN_MS;
    const waitMs = undone.check(key, pod, memory.states.get(key), placing.tolerations);
    if (waitMs > 0) return { outcome: 'conflict', againInMs: waitMs };
    const written = await write(key, pod, placing, settings, signal);
    switch (written.kind) {
      case 'conflict':
        return { outcome: 'conflict' };
      case 'gone':
        forget(key);
        return { outcome: 'unchanged' };
      case 'refused':
        return { outcome: 'waiting', againInMs: written.againInMs };
      case 'nothing':
      case 'recorded':
        remember(key, pod, decision, settings);
        return { outcome: written.kind === 'nothing' ? 'unchanged' : 'written', againInMs };
      case 'written': {
        const tolerations = written.placing?.tolerations ?? [];
        const now = podAfter(pod, tolerations, written.object);
        remember(key, now, decision, settings, tolerations);
        // The write changed nothing: another webhook removed the tolerations from the same request, and no event will follow.
        if (now.resourceVersion === pod.resourceVersion) return { outcome: 'conflict' };
        answered.set(key, { uid: pod.uid, resourceVersion: now.resourceVersion });
        if (pod.nodeName === undefined) options.onPlaced?.(Math.max(0, clock.wall() - pod.createdAt) / 1000);
        return { outcome: 'written', againInMs, detail: placingText(written.placing ?? placing) };
      }
      default:
        return written satisfies never;
    }
  }

  /** Writes what the pod lacks. In the mode `observe` it writes nothing, and a gate of an earlier mode stays, too. */
  function write(
    key: string,
    pod: Pod,
    placing: PlacementIntent | undefined,
    settings: Settings,
    signal: AbortSignal,
  ): WrittenPlacing | Promise<WrittenPlacing> {
    if (onlyObserves(settings)) return { kind: 'nothing' };
    return release.write(key, pod, placing, sender(key, settings, signal));
  }

  /** Returns functions that send a patch, and let the memory know what the watch will show. */
  function sender(key: string, settings: Settings, signal: AbortSignal): SendRelease {
    const targetOf = ({ namespace, name, gated }: Pod) =>
      ({ kind: 'Pod', namespace, name, action: gated ? 'release' : 'tolerate' }) as const;
    return {
      async send(pod, placing, patch) {
        const { generation } = pod;
        if (generation !== undefined) memory.writeBegins(key, expectedOf(pod, generation, settings, placing));
        try {
          const written = await options.write(targetOf(pod), patch, signal);
          return written.kind === 'written' ? { ...written, placing } : written;
        } finally {
          memory.writeEnds(key);
        }
      },
      check: (pod, patch) => options.write({ ...targetOf(pod), dryRun: true }, patch, signal),
    };
  }

  return {
    reconcile,
    states: memory.states,
    lookupEnded: waiting.lookupEnded,
    isUpToDate(key, now) {
      const found = readingOf(now);
      return found !== undefined && memory.isUpToDate(key, now, found.reading);
    },
    invalidate: memory.invalidate,
    followers: memory.followers,
    end() {
      backlog.end();
      larges.stop();
    },
    contested: undone.count,
  };
}

/** Whether a pod without a node asks for other architectures than its images have. */
function fitsNowhere(pod: Pod, decision: PlacementState['decision'], settings: Settings): boolean {
  return pod.nodeName === undefined && contradictionOf(decision, pod.asked, settings) !== undefined;
}

/** Returns what the watch will show after the write. */
function expectedOf(pod: Pod, generation: number, settings: Settings, placing: PlacementIntent | undefined): Expected {
  const read = whatIsRead(pod, generation + 1, false);
  return { uid: pod.uid, read, settings, tolerations: placing?.tolerations ?? [] };
}
