import type { Result } from '../../kube/controller.ts';
import { type ApiError, isRefusal } from '../../kube/errors.ts';
import type { WriteResult } from '../../kube/writer.ts';
import { type Decision, decide, standing } from '../../placement/decide.ts';
import { isSystemNamespace } from '../../placement/eligibility.ts';
import { unreadyNodesOf, wantsPodOn } from '../../placement/nodes/held-back.ts';
import { type DaemonSet, GUESSED, readDaemonSet } from '../../placement/objects/daemonset.ts';
import { daemonSetPatch } from '../../placement/patch/patch.ts';
import { type Toleration, tolerationText } from '../../placement/patch/tolerations.ts';
import { NOTHING_NEEDED, onlyObserves, placingText, wantedTolerations } from '../../placement/placing.ts';
import { decideAlike, settingsFor } from '../../placement/policy.ts';
import { decisionNote } from '../../placement/reasons.ts';
import { isUnfit, type Want } from '../../placement/rollout/brake.ts';
import { decideTemplate } from '../../placement/rollout/template.ts';
import type { Settings } from '../../placement/settings.ts';
import { overTemplate, recordBasis, standingTemplate } from '../../placement/standing.ts';
import { readDaemonSetSubject, type Subject } from '../../placement/subject.ts';
import { announce, announceSecrets, createAnnouncer } from '../announce.ts';
import { createAnswered } from '../answered.ts';
import { createContention } from '../contention.ts';
import { keptDecision } from '../kept-decision.ts';
import { createLargeTurns, WAITS_FOR_LARGE_TURN } from '../large-turns.ts';
import { HELD_AGAIN_MS, imagesAwaited, imagesUnknown, OPEN_AGAIN_MS, type PlacementState } from '../placement-state.ts';
import { createRefusals } from '../refusals.ts';
import { createRefusedEntries } from '../refused-entries.ts';
import { createWaiting, NO_ROOM_AGAIN_MS } from '../waiting.ts';
import { begun, type Change, contestedNote, guessBasis, hasRolled, intentOf, regarding } from './change.ts';
import type { DaemonSetController, DaemonSetControllerOptions } from './contract.ts';
import { createLostRecords } from './lost-records.ts';
import { createOwnership } from './ownership.ts';
import { partTaken, withoutRefused } from './refused-tolerations.ts';
import { createRolloutTurn } from './rollout.ts';
import { createStops, holdersOf, unprovenOfSystem } from './stopped.ts';
import { createUnserved } from './unserved.ts';

/** How often a DaemonSet checks whether its turn has come. A change of any DaemonSet leads to a check of the next one too. */
const TURN_AGAIN_MS = 15_000;
const WAITS_FOR_TURN: Result = { outcome: 'waiting', againInMs: TURN_AGAIN_MS };

/** Creates the DaemonSet controller. Keys are `namespace/name`. `kube/controller` owns its queue and its workers. */
export function createDaemonSetController(options: DaemonSetControllerOptions): DaemonSetController {
  const { daemonSets, namespaces, images, write, clock } = options;
  const states = new Map<string, PlacementState>();
  const firstSeen = new Map<string, { id: string; at: number }>();
  const waiting = createWaiting(clock);
  const contention = createContention(clock);
  const announcer = createAnnouncer(options.events, clock);
  const refusals = createRefusals({ ...options, announcer });
  const entries = createRefusedEntries(clock);
  const isSystem = (namespace: string) => isSystemNamespace(namespace, options.settings());
  const taints = () => options.settings().taints;
  const turn = createRolloutTurn({
    daemonSets,
    clock,
    isSystem,
    unreadyNodes: (daemonSet) => unreadyNodesOf(daemonSet, options.nodes(), taints().key),
  });
  const unserved = createUnserved({ daemonSets, isSystem, taints, onServed: options.onServed });
  const answered = createAnswered(daemonSets, clock);
  const larges = createLargeTurns(clock, true, options.onTurn);
  const ownership = createOwnership({ write, clock, onRefused: options.onRefused });
  const lost = createLostRecords({
    ...{ write, clock, contestedMs, onRefused: options.onRefused },
    onWritten: (key, daemonSet, change) => contention.wrote(key, intentOf(daemonSet, change)),
  });
  const unproven = () => unprovenOfSystem({ daemonSets, turn, isSystem, taints });
  const actOnStop = createStops({ ...options, turn, answered, announcer, refusals });
  /** Whether nodes stayed without the taint because of a rollout. */
  let [wasStopping, wasHolding] = [false, false];

  function forget(key: string): void {
    for (const memory of [states, firstSeen]) memory.delete(key);
    waiting.set(key, []);
    for (const memory of [contention, announcer, refusals, answered, larges, ownership, lost, turn]) memory.forget(key);
    unserved.served(key);
    options.onDecided(key);
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result> {
    let isInLine = false;
    try {
      const result = await reconcileWhole(key, signal);
      isInLine = result === WAITS_FOR_TURN || result === WAITS_FOR_LARGE_TURN;
      if (turn.verdict(key) === undefined) return result;
      const { againInMs = TURN_AGAIN_MS } = result;
      return { ...result, againInMs: Math.min(againInMs, TURN_AGAIN_MS) };
    } finally {
      // Whatever else happened, a DaemonSet that does not wait for its turn must not hold up those behind it.
      if (!isInLine) turn.leave(key);
      const unblocked = states.get(key)?.decision.kind === 'wait' ? undefined : turn.seen(key);
      if (unblocked !== undefined) options.onTurn(unblocked);
      const isStopping = turn.stopsAll().length > 0;
      const isHolding = isStopping || unproven().length > 0;
      if (wasStopping !== isStopping || (wasHolding && !isHolding)) options.onServed();
      [wasStopping, wasHolding] = [isStopping, isHolding];
    }
  }

  async function reconcileWhole(key: string, signal: AbortSignal): Promise<Result> {
    const kept = daemonSets.get(key);
    if (kept?.isLarge !== true) {
      larges.forget(key);
      return decideAndAct(key, kept, signal);
    }
    if (!larges.begin(key, states.has(key) ? 'again' : 'new')) return WAITS_FOR_LARGE_TURN;
    try {
      return await decideAndAct(key, await options.wholeDaemonSet(kept, signal), signal);
    } finally {
      larges.end();
    }
  }

  async function decideAndAct(key: string, daemonSet: DaemonSet | undefined, signal: AbortSignal): Promise<Result> {
    if (daemonSet === undefined) {
      forget(key);
      return { outcome: 'unchanged' };
    }
    const before = states.get(key);
    if (before !== undefined && before.uid !== daemonSet.uid) announcer.forget(key);
    const namespace = namespaces.get(daemonSet.namespace);
    // The event of the namespace will follow and queue its DaemonSets.
    if (namespace === undefined) return { outcome: 'waiting' };
    // The watch does not show the last write yet. The event of that write queues the DaemonSet again.
    const behindMs = answered.behindMs(key, daemonSet);
    if (behindMs > 0) return { outcome: 'unchanged', againInMs: behindMs };
    const settings = settingsFor(options.settings(), { namespace, labels: daemonSet.template.labels });
    const subject = readDaemonSetSubject(daemonSet, namespace, settings);
    if (subject.skipped !== undefined) {
      keep(key, daemonSet, settings, { kind: 'skip', reason: subject.skipped });
      turn.forget(key);
      unserved.served(key);
      options.onDecided(key);
      return { outcome: 'unchanged' };
    }
    const found = onlyObserves(settings) ? undefined : await lost.record(key, daemonSet, settings, signal);
    if (found?.kind === 'written') {
      answered.set(key, { uid: daemonSet.uid, resourceVersion: found.resourceVersion });
      return { outcome: 'written', detail: 'recorded its tolerations again' };
    }
    if (found?.kind === 'conflict') return { outcome: 'conflict' };
    const result = await decideAndWrite(key, found?.daemonSet ?? daemonSet, settings, subject, signal);
    if (result === WAITS_FOR_TURN || options.givesBack === false || onlyObserves(settings)) return result;
    if (result.outcome === 'written' || result.outcome === 'conflict') return result;
    const { resourceVersion, againInMs } = await ownership.atSight(key, daemonSet, signal);
    if (resourceVersion !== undefined) answered.set(key, { uid: daemonSet.uid, resourceVersion });
    const due = [result.againInMs, againInMs, lost.againInMs(key)].filter((ms) => ms !== undefined);
    return due.length === 0 ? result : { ...result, againInMs: Math.min(...due) };
  }

  async function decideAndWrite(
    key: string,
    daemonSet: DaemonSet,
    settings: Settings,
    subject: Subject,
    signal: AbortSignal,
  ): Promise<Result> {
    const stopped = await actOnStop(key, daemonSet, signal);
    if (stopped !== undefined) {
      if (!turn.isUnproven(key)) options.onDecided(key);
      // Once its author changes it, it is decided again. Until then a taint would cut it off.
      unserved.lacks(key, { architectures: undefined, why: 'in-line', answer: '' });
      return stopped;
    }
    const decision = await decideFor(key, daemonSet, settings, subject, signal);
    // The controller removes extra tolerations from templates, so no Event reports them as stale.
    const template = { ...daemonSet.template, tolerations: undefined };
    announce(key, regarding(daemonSet), template, decision, settings, announcer);
    const problems = images.unusableSecrets(daemonSet.namespace, template.pullSecrets);
    announceSecrets(key, regarding(daemonSet), problems, announcer);
    if (decision.kind === 'wait' && decision.failed.length > 0) options.onDecided(key);
    const result = await act(key, daemonSet, decision, settings, subject, signal);
    const isDone = result.outcome !== 'conflict' && result.outcome !== 'waiting';
    if (isDone && !turn.isUnproven(key)) options.onDecided(key);
    return result;
  }

  async function decideFor(
    key: string,
    daemonSet: DaemonSet,
    settings: Settings,
    subject: Subject,
    signal: AbortSignal,
  ): Promise<Decision> {
    if (settings.mode === 'affinity') return NOTHING_NEEDED;
    const { template, namespace } = daemonSet;
    const state = states.get(key);
    // Images of an unchanged template are not looked up again at every event of its status.
    const again = state?.decision.kind === 'hold' && clock.monotonic() - state.at >= HELD_AGAIN_MS;
    if (
      state?.final &&
      !again &&
      state.uid === daemonSet.uid &&
      state.read === daemonSet.authored &&
      decideAlike(state.settings, settings) &&
      state.decision.kind !== 'skip'
    ) {
      return state.decision;
    }
    // A template that its author has changed since is decided from what is known now, not from the record.
    const isFirst = state === undefined || state.uid !== daemonSet.uid;
    const placed = isFirst ? standingTemplate(subject, daemonSet.recorded, images.namesOf) : undefined;
    if (placed !== undefined) return standing(placed, undefined);
    const id = `${daemonSet.uid} ${daemonSet.authored}`;
    const known = firstSeen.get(key);
    const seen = known?.id === id ? known : { id, at: clock.monotonic() };
    firstSeen.set(key, seen);
    const own = template.pullSecrets;
    const added =
      own.length > 0 ? [] : await options.serviceAccountSecrets(namespace, template.serviceAccountName, signal);
    const decision = decide(subject, {
      clusterArchitectures: options.clusterArchitectures(),
      namesOf: images.namesOf,
      answerOf: (image) => images.answer(image, namespace, [...own, ...added]),
      waitedMs: clock.monotonic() - seen.at,
    });
    return decision.kind === 'place' ? overTemplate(decision, daemonSet.recorded, settings) : decision;
  }

  /** Keeps a decision. False if there is no room to remember the images that it waits for. */
  function keep(key: string, daemonSet: DaemonSet, settings: Settings, decision: PlacementState['decision']): boolean {
    const isKnown = decision.kind === 'skip' || imagesUnknown(decision).length === 0;
    const final = isKnown && !(decision.kind === 'place' && decision.followsCluster);
    const { uid } = daemonSet;
    states.set(key, {
      uid,
      read: daemonSet.authored,
      settings,
      final,
      at: Math.floor(clock.monotonic()),
      decision: decision.kind === 'skip' ? decision : keptDecision(decision),
    });
    return waiting.set(key, decision.kind === 'skip' ? [] : imagesAwaited(decision).map(images.canonicalOf));
  }

  async function act(
    key: string,
    daemonSet: DaemonSet,
    decision: Decision,
    settings: Settings,
    subject: Subject,
    signal: AbortSignal,
  ): Promise<Result> {
    if (decision.kind !== 'place' || onlyObserves(settings)) unserved.served(key);
    if (decision.kind === 'wait') {
      const isReported = keep(key, daemonSet, settings, decision);
      return { outcome: 'waiting', againInMs: isReported ? decision.againInMs : NO_ROOM_AGAIN_MS };
    }
    if (decision.kind === 'hold') {
      keep(key, daemonSet, settings, decision);
      const detail = decisionNote(decision, daemonSet.template.os, settings.schedulable);
      return { outcome: 'held', againInMs: HELD_AGAIN_MS, detail };
    }
    const againInMs = decision.unknown.length > 0 ? OPEN_AGAIN_MS : undefined;
    if (onlyObserves(settings)) {
      keep(key, daemonSet, settings, decision);
      return { outcome: 'unchanged', againInMs };
    }
    const all = wantedTolerations(settings, decision.architectures);
    const { wanted, againInMs: refusedMs } = withoutRefused(entries, daemonSet, all);
    const known = decision.unknown.length > 0 ? guessBasis(daemonSet) : recordBasis(subject);
    // A template that lacks what was refused is not what its images call for. The next process must decide again.
    const basis = refusedMs === undefined ? known : GUESSED;
    const change = decideTemplate(daemonSet, wanted, options.liveTaints(), basis);
    const lacks = (why: Want, answer = '') =>
      unserved.lacks(key, { architectures: all.map(({ value }) => value), why, answer });
    if (change.kind === 'unchanged') {
      if (refusedMs !== undefined) {
        lacks('refused', unserved.get(key)?.answer);
        return { outcome: 'waiting', againInMs: refusedMs };
      }
      unserved.served(key);
      keep(key, daemonSet, settings, decision);
      return { outcome: 'unchanged', againInMs };
    }
    const waitMs = contestedMs(key, daemonSet, change);
    if (waitMs > 0) {
      lacks('contested');
      return { outcome: 'conflict', againInMs: waitMs };
    }
    if (change.rolls && options.isPaced && !turn.take(key, daemonSet)) {
      keep(key, daemonSet, settings, decision);
      lacks('in-line');
      return WAITS_FOR_TURN;
    }
    let written: WriteResult;
    try {
      written = await writeOrGiveBack(key, daemonSet, change, wanted, signal);
    } catch (error) {
      if (isRefusal(error)) lacks(whyRefused(daemonSet, error), error.message);
      else lacks('failed');
      throw error;
    }
    if (written.kind === 'conflict') {
      lacks('failed');
      return { outcome: 'conflict' };
    }
    if (written.kind === 'gone') return { outcome: 'unchanged' };
    if (written.kind === 'written') contention.wrote(key, intentOf(daemonSet, change));
    if (refusedMs !== undefined) {
      lacks('refused', unserved.get(key)?.answer);
      return { outcome: 'waiting', againInMs: refusedMs };
    }
    // Only the watch shows whether a webhook took the tolerations out of the same write.
    if (change.rolls && written.kind === 'written') lacks('failed');
    else unserved.served(key);
    keep(key, daemonSet, settings, decision);
    if (written.kind === 'written') {
      const answer = readDaemonSet(written.object);
      if (answer.resourceVersion === daemonSet.resourceVersion) return { outcome: 'conflict' };
      const resourceVersion = await ownership.afterWrite(key, answer, signal);
      answered.set(key, { uid: daemonSet.uid, resourceVersion });
    }
    return {
      outcome: 'written',
      againInMs,
      detail: `template ${placingText({ tolerations: wanted, affinity: undefined })}`,
    };
  }

  function whyRefused({ namespace, name, recorded }: DaemonSet, error: ApiError): Want {
    const isLarge = daemonSets.get(`${namespace}/${name}`)?.isLarge === true;
    return isUnfit(error, { isLarge, isRecorded: recorded !== undefined }) ? 'unfit' : 'refused';
  }

  /** Returns the milliseconds to leave a DaemonSet alone because another writer keeps undoing this change; 0: write. */
  function contestedMs(key: string, daemonSet: DaemonSet, change: Change): number {
    const { waitMs, began } = contention.check(key, intentOf(daemonSet, change));
    if (began) {
      announcer.report(key, {
        regarding: regarding(daemonSet),
        type: 'Warning',
        reason: 'WriteContested',
        action: 'Placing',
        note: contestedNote(daemonSet, change),
      });
    }
    return waitMs;
  }

  async function writeOrGiveBack(
    key: string,
    daemonSet: DaemonSet,
    change: Change,
    wanted: readonly Toleration[],
    signal: AbortSignal,
  ): Promise<WriteResult> {
    const { namespace, name } = daemonSet;
    const target = { kind: 'DaemonSet', namespace, name, action: 'tolerate' } as const;
    let rolls = false;
    let isSure = true;
    try {
      const written = await write(target, daemonSetPatch(daemonSet, begun(daemonSet, change)), signal);
      rolls = hasRolled(daemonSet, written);
      if (written.kind === 'conflict') return written;
      refusals.forget(key);
      entries.took(namespace, wanted.map(tolerationText));
      return written;
    } catch (error) {
      isSure = isRefusal(error);
      if (!isRefusal(error)) throw error;
      const isForGood = refusals.note(key, regarding(daemonSet), error);
      // It says nothing about the tolerations, which other DaemonSets of the namespace need too.
      if (whyRefused(daemonSet, error) === 'unfit') throw error;
      const wish = { wanted, liveTaints: options.liveTaints(), isForGood };
      const part = await partTaken(entries, daemonSet, wish, error, (patch) =>
        write({ ...target, dryRun: true }, patch, signal),
      );
      if (part !== undefined && contestedMs(key, daemonSet, part) === 0) {
        const written = await write(target, daemonSetPatch(daemonSet, begun(daemonSet, part)), signal);
        rolls = hasRolled(daemonSet, written);
        if (written.kind === 'written') contention.wrote(key, intentOf(daemonSet, part));
      }
      throw error;
    } finally {
      // A change of the record alone did not take the turn.
      if (change.rolls && !rolls) turn.giveBack(key, isSure);
    }
  }

  return {
    reconcile,
    states,
    lookupEnded: waiting.lookupEnded,
    nextToRoll: turn.next,
    holdsTaints: (key) => (turn.waits(key) && daemonSets.get(key)?.rolledOut === true) || turn.isUnproven(key),
    holders: (node) => holdersOf(node, { daemonSets, turn, unserved }),
    awaitsProof: (node) => unproven().some((one) => wantsPodOn(one, node, taints().key)),
    stopsAll: turn.stopsAll,
    stopped: () => turn.stopped().length,
    contested: contention.count,
    end: larges.stop,
  };
}
