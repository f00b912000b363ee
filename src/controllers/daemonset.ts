import type { Clock } from '../kube/clock.ts';
import type { Reconciler, Result } from '../kube/controller.ts';
import { isRefusal } from '../kube/errors.ts';
import type { EventRecorder, Regarding } from '../kube/events.ts';
import type { Store } from '../kube/store.ts';
import type { Writer, Written } from '../kube/writer.ts';
import {
  type DaemonSet,
  decideTemplate,
  type RecordBasis,
  readDaemonSet,
  readRecord,
  type TemplateDecision,
} from '../placement/daemonset.ts';
import { type Decision, decide, standing } from '../placement/decide.ts';
import { type Namespace, skipDaemonSet } from '../placement/eligibility.ts';
import { daemonSetPatch } from '../placement/patch.ts';
import { NOTHING_NEEDED, usesTaints, wantedTolerations } from '../placement/placing.ts';
import { decideAlike, settingsFor } from '../placement/policy.ts';
import type { Settings } from '../placement/settings.ts';
import { basisOf, GUESSED, overTemplate, standingTemplate } from '../placement/standing.ts';
import { announce, announceSecrets, createAnnouncer } from './announce.ts';
import { createAnswered } from './answered.ts';
import { createContention } from './contention.ts';
import type { ImageSource } from './images.ts';
import { HELD_AGAIN_MS, imagesAwaited, imagesUnknown, OPEN_AGAIN_MS, type PlacementState } from './placement-state.ts';
import { createRefusals } from './refusals.ts';
import { createRolloutTurn } from './rollout.ts';
import { createWaiting, type Due } from './waiting.ts';

export type DaemonSetControllerOptions = {
  readonly daemonSets: Store<DaemonSet>;
  readonly namespaces: Store<Namespace>;
  /** As of now: they may be exchanged at any time. */
  readonly settings: () => Settings;
  readonly clusterArchitectures: () => readonly string[];
  /** Taints of ours that nodes carry, as `key:effect`. */
  readonly liveTaints: () => ReadonlySet<string>;
  /** The pull secrets that admission adds to a pod of this service account. */
  readonly serviceAccountSecrets: (namespace: string, name: string, signal: AbortSignal) => Promise<readonly string[]>;
  readonly images: ImageSource;
  readonly write: Writer;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
  readonly onDecided: (key: string) => void;
  /** The API server refused a write. */
  readonly onRefused?: () => void;
};

/** Gathers what a DaemonSet's template needs, decides, writes. */
export type DaemonSetController = {
  readonly reconcile: Reconciler;
  readonly states: ReadonlyMap<string, PlacementState>;
  /** The lookup of an image, by its canonical name, has ended: the DaemonSets to look at again, and when. */
  imageSettled(image: string): readonly Due[];
  /** The DaemonSets that wait for their turn to roll. */
  waitingToRoll(): readonly string[];
  /** DaemonSets whose tolerations another writer keeps taking out. */
  contested(): number;
};

/** Looks whether its turn has come this often, besides when a DaemonSet changes. */
const TURN_AGAIN_MS = 15_000;

/** Creates the DaemonSets' half of a controller. Keys are `namespace/name`. */
export function createDaemonSetController(options: DaemonSetControllerOptions): DaemonSetController {
  const { daemonSets, namespaces, images, write, clock } = options;
  const states = new Map<string, PlacementState>();
  const firstSeen = new Map<string, { id: string; at: number }>();
  const queued = new Set<string>();
  const waiting = createWaiting(clock);
  const contention = createContention(clock);
  const announcer = createAnnouncer(options.events, clock);
  const refusals = createRefusals({ announcer, clock, onRefused: options.onRefused });
  const turn = createRolloutTurn(daemonSets, clock);
  const answered = createAnswered(daemonSets, clock);

  function forget(key: string): void {
    for (const memory of [states, firstSeen, queued]) memory.delete(key);
    waiting.set(key, []);
    for (const memory of [contention, announcer, refusals, answered]) memory.forget(key);
    options.onDecided(key);
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const daemonSet = daemonSets.get(key);
    if (daemonSet === undefined) {
      forget(key);
      return { outcome: 'unchanged' };
    }
    const before = states.get(key);
    if (before !== undefined && before.uid !== daemonSet.uid) announcer.forget(key);
    const namespace = namespaces.get(daemonSet.namespace);
    // Its event is on the way, and brings its DaemonSets back.
    if (namespace === undefined) return { outcome: 'waiting' };
    // The watch has yet to show what the last write made of it; its event brings the key back.
    const behindMs = answered.behindMs(key, daemonSet);
    if (behindMs > 0) return { outcome: 'unchanged', againInMs: behindMs };
    const settings = settingsFor(options.settings(), { namespace, labels: daemonSet.template.labels });
    const skipped = skipDaemonSet(daemonSet, namespace, settings);
    if (skipped !== undefined) {
      keep(key, daemonSet, settings, { kind: 'skip', reason: skipped });
      options.onDecided(key);
      return { outcome: 'unchanged' };
    }
    const decision = await decideFor(key, daemonSet, settings, signal);
    // Tolerations that a template should not have are taken out: no Event says that they are stale.
    const template = { ...daemonSet.template, tolerations: undefined };
    announce(key, regarding(daemonSet), template, decision, settings, announcer);
    const problems = images.unusableSecrets(daemonSet.namespace, template.pullSecrets);
    announceSecrets(key, regarding(daemonSet), problems, announcer);
    if (decision.kind === 'wait' && decision.failed.length > 0) options.onDecided(key);
    const result = await act(key, daemonSet, decision, settings, signal);
    if (result.outcome !== 'conflict' && result.outcome !== 'waiting') options.onDecided(key);
    return result;
  }

  async function decideFor(
    key: string,
    daemonSet: DaemonSet,
    settings: Settings,
    signal: AbortSignal,
  ): Promise<Decision> {
    if (!usesTaints(settings)) return NOTHING_NEEDED;
    const { template, namespace } = daemonSet;
    const state = states.get(key);
    // Images of a template that has not changed are not asked again: a tag may grow old between two events of its status.
    const again = state?.decision.kind === 'hold' && clock.monotonic() - state.at >= HELD_AGAIN_MS;
    if (
      state?.final &&
      !again &&
      state.uid === daemonSet.uid &&
      state.read === whatIsRead(daemonSet) &&
      decideAlike(state.settings, settings) &&
      state.decision.kind !== 'skip'
    ) {
      return state.decision;
    }
    const isFirst = state === undefined || state.uid !== daemonSet.uid || state.read !== whatIsRead(daemonSet);
    const placed = isFirst ? standingTemplate(daemonSet, settings, images.namesOf) : undefined;
    if (placed !== undefined) return standing(placed, undefined);
    const id = `${daemonSet.uid} ${whatIsRead(daemonSet)}`;
    const known = firstSeen.get(key);
    const seen = known?.id === id ? known : { id, at: clock.monotonic() };
    firstSeen.set(key, seen);
    const own = template.pullSecrets;
    const added =
      own.length > 0 ? [] : await options.serviceAccountSecrets(namespace, template.serviceAccountName, signal);
    const decision = decide({
      template,
      namespace,
      settings,
      clusterArchitectures: options.clusterArchitectures(),
      namesOf: images.namesOf,
      answerOf: (image) => images.answer(image, namespace, [...own, ...added]),
      waitedMs: clock.monotonic() - seen.at,
    });
    return decision.kind === 'place' ? overTemplate(decision, daemonSet.recorded, settings) : decision;
  }

  function keep(key: string, daemonSet: DaemonSet, settings: Settings, decision: PlacementState['decision']): void {
    const isKnown = decision.kind === 'skip' || imagesUnknown(decision).length === 0;
    const final = isKnown && !(decision.kind === 'place' && decision.followsCluster);
    const { uid } = daemonSet;
    states.set(key, { uid, read: whatIsRead(daemonSet), settings, final, at: clock.monotonic(), decision });
    waiting.set(key, decision.kind === 'skip' ? [] : imagesAwaited(decision).map(images.canonicalOf));
    queued.delete(key);
  }

  async function act(
    key: string,
    daemonSet: DaemonSet,
    decision: Decision,
    settings: Settings,
    signal: AbortSignal,
  ): Promise<Result> {
    if (decision.kind === 'wait') {
      keep(key, daemonSet, settings, decision);
      return { outcome: 'waiting', againInMs: decision.againInMs };
    }
    if (decision.kind === 'hold') {
      keep(key, daemonSet, settings, decision);
      return { outcome: 'held', againInMs: HELD_AGAIN_MS };
    }
    const wanted = wantedTolerations(settings, decision.architectures);
    const basis = decision.unknown.length > 0 ? guessBasis(daemonSet) : basisOf(daemonSet.template, settings);
    const change = decideTemplate(daemonSet, wanted, options.liveTaints(), basis);
    const againInMs = decision.unknown.length > 0 ? OPEN_AGAIN_MS : undefined;
    if (change.kind === 'settled') {
      keep(key, daemonSet, settings, decision);
      return { outcome: 'unchanged', againInMs };
    }
    const intent = `${daemonSet.uid} ${change.recorded}`;
    const { waitMs, began } = contention.check(key, intent);
    if (began) {
      announcer.tell(key, {
        regarding: regarding(daemonSet),
        type: 'Warning',
        reason: 'WriteContested',
        action: 'Placing',
        note: "another writer took archaware's tolerations from the template three times in ten minutes: add them at its source",
      });
    }
    if (waitMs > 0) return { outcome: 'conflict', againInMs: waitMs };
    if (change.rolls && !turn.take(key, daemonSet)) {
      keep(key, daemonSet, settings, decision);
      queued.add(key);
      return { outcome: 'waiting', againInMs: TURN_AGAIN_MS };
    }
    // From here on it no longer waits for its turn, whatever becomes of the write.
    queued.delete(key);
    const written = await writeOrGiveBack(key, daemonSet, change, signal);
    if (written.kind === 'conflict') return { outcome: 'conflict' };
    if (written.kind === 'gone') return { outcome: 'unchanged' };
    keep(key, daemonSet, settings, decision);
    if (written.kind === 'written') {
      contention.wrote(key, intent);
      const { resourceVersion } = readDaemonSet(written.object);
      if (resourceVersion === daemonSet.resourceVersion) return { outcome: 'conflict' };
      answered.set(key, { uid: daemonSet.uid, resourceVersion });
    }
    return { outcome: 'written', againInMs };
  }

  async function writeOrGiveBack(
    key: string,
    daemonSet: DaemonSet,
    change: Extract<TemplateDecision, { kind: 'set' }>,
    signal: AbortSignal,
  ): Promise<Written> {
    const { namespace, name } = daemonSet;
    const target = { kind: 'DaemonSet', namespace, name, action: 'tolerate' } as const;
    let rolls = false;
    try {
      const written = await write(target, daemonSetPatch(daemonSet, change), signal);
      rolls = written.kind === 'written';
      refusals.forget(key);
      return written;
    } catch (error) {
      if (isRefusal(error)) refusals.note(key, regarding(daemonSet), error);
      throw error;
    } finally {
      if (!rolls) turn.giveBack(key);
    }
  }

  return {
    reconcile,
    states,
    imageSettled: waiting.settled,
    waitingToRoll: () => [...queued],
    contested: contention.count,
  };
}

/** What a guess is recorded with; a record that it leaves alone stays as it is. */
function guessBasis({ recorded }: DaemonSet): RecordBasis {
  return readRecord(recorded).basis ?? GUESSED;
}

/** What of a template decides about its images; its tolerations do not. */
function whatIsRead({ template }: DaemonSet): string {
  const { images, os, hasRuntimeClass, statement, pullSecrets, serviceAccountName, priorityClassName } = template;
  return JSON.stringify([images, os, hasRuntimeClass, statement, pullSecrets, serviceAccountName, priorityClassName]);
}

function regarding({ namespace, name, uid }: DaemonSet): Regarding {
  return { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace, name, uid };
}
