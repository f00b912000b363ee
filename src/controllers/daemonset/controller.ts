import type { Result } from '../../kube/control-loop.ts';
import { isRefusal } from '../../kube/errors.ts';
import { isSystemNamespace, settingsFor } from '../../placement/eligibility.ts';
import { unreadyNodesOf, wantsPodOn } from '../../placement/nodes/cut-off.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { problemsOf, secretProblems, tooLargeProblems } from '../../placement/object-problems.ts';
import { type DaemonSet, readDaemonSet } from '../../placement/objects/daemonset.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { stoppedNote } from '../../placement/rollout/brake.ts';
import { canTakeBack, isTakenBack, takeBack } from '../../placement/rollout/template.ts';
import { keyOf, readDaemonSetSubject } from '../../placement/subject.ts';
import { regardingDaemonSet } from '../announce.ts';
import { behindMs, createMemory } from '../memory.ts';
import { createNotices } from '../refusals.ts';
import { giveBackAtSight } from './give-back.ts';
import {
  createRolloutTurn,
  forgetRollout,
  isPaused,
  isUnprovenNow,
  markSeen,
  nextToRoll,
  stopped,
  stopsAll,
  takesBack,
  verdictNow,
  waitsInLine,
} from './rollout.ts';
import {
  carryOut,
  type DaemonSetControllerOptions,
  decideForTemplate,
  recordAgain,
  send,
  type TemplateCase,
  type TemplateParts,
  TURN_AGAIN_MS,
  WAITS_FOR_TURN,
  wrote,
} from './template.ts';
import { holdersOf, served } from './unserved.ts';

/** The DaemonSet controller: gathers the input of a template's decision, decides, writes. */
export type DaemonSetController = ReturnType<typeof createDaemonSetController>;

/** Creates the DaemonSet controller. Keys are `namespace/name`. `kube/control-loop.ts` owns its queue and its workers. */
export function createDaemonSetController(options: DaemonSetControllerOptions) {
  const { daemonSets, clock } = options;
  const memory = createMemory(options.images, clock);
  const taints = () => options.settings().taints;
  const turn = createRolloutTurn({
    daemonSets,
    clock,
    isSystem: (namespace) => isSystemNamespace(namespace, options.settings()),
    unreadyNodes: (daemonSet) => unreadyNodesOf(daemonSet, options.nodes(), taints().key),
  });
  const notices = createNotices(options);
  const known = { memory, turn, unserved: new Map(), wasStopping: false, wasHolding: false };
  const parts: TemplateParts = { ...options, ...notices, ...known };
  return {
    reconcile: (key: string, signal: AbortSignal): Promise<Result> => reconcile(parts, key, signal),
    states: memory.all,
    /** Returns the DaemonSets to reconcile again, and when, after the lookup of an image (its canonical name) has ended. */
    lookupEnded: memory.lookupEnded,
    /** Returns the DaemonSet whose turn to roll has come; undefined while another one rolls, and if none waits. */
    nextToRoll: (): string | undefined => nextToRoll(turn),
    /**
     * Whether nodes must not be tainted before the DaemonSet has had its turn to roll, and a first pod of it shows that the change is let
     * in. One that had not rolled out before does not count, nor one that waits for a stopped DaemonSet of its own namespace: its author
     * can keep it in that state for ever.
     */
    holdsTaints: (key: string): boolean =>
      (waitsInLine(turn, key) && daemonSets.get(key)?.rolledOut === true) || isUnprovenNow(turn, key),
    /** Returns the DaemonSets that this node must not be tainted for, with the reason for each. */
    holders: (node: Node) => holdersOf(parts, node),
    /**
     * Whether a taint would come too early for this node: a DaemonSet of the system has a change of archaware of which nothing shows yet
     * that it is let in. Once a node has the taint, the change cannot be taken back.
     */
    awaitsProof: (node: Node): boolean => unproven(parts).some((one) => wantsPodOn(one, node, taints().key)),
    /** Returns the DaemonSets that stop all rollouts, and all taints with them. */
    stopsAll: (): string[] => stopsAll(turn),
    /** Returns the DaemonSets that did not come back after a write. */
    stopped: (): string[] => stopped(turn),
    /** Counts the DaemonSets whose tolerations another writer keeps removing. */
    contested: (): number => notices.contention.count(memory.all.values()),
  };
}

async function reconcile(parts: TemplateParts, key: string, signal: AbortSignal): Promise<Result> {
  const { turn } = parts;
  let isInLine = false;
  try {
    const result = await gather(parts, key, signal);
    isInLine = result === WAITS_FOR_TURN;
    if (verdictNow(turn, key) === undefined) return result;
    const { againInMs = TURN_AGAIN_MS } = result;
    return { ...result, againInMs: Math.min(againInMs, TURN_AGAIN_MS) };
  } finally {
    // Whatever else happened, a DaemonSet that does not wait for its turn must not hold up those behind it.
    if (!isInLine) turn.line.delete(key);
    const unblocked = parts.memory.all.get(key)?.decision?.kind === 'wait' ? undefined : markSeen(turn, key);
    if (unblocked !== undefined) parts.onTurn(unblocked);
    const isStopping = stopsAll(turn).length > 0;
    const isHolding = isStopping || unproven(parts).length > 0;
    if (parts.wasStopping !== isStopping || (parts.wasHolding && !isHolding)) parts.onServed();
    [parts.wasStopping, parts.wasHolding] = [isStopping, isHolding];
  }
}

/** Returns the DaemonSets of the system whose change may still have to be taken back, and then from nodes without the taint. */
function unproven({ turn, daemonSets, settings }: TemplateParts): DaemonSet[] {
  if (settings().taints.effect !== 'NoSchedule') return [];
  return [...turn.rollouts.keys()].flatMap((key) => {
    const daemonSet = isUnprovenNow(turn, key) ? daemonSets.get(key) : undefined;
    return daemonSet !== undefined && turn.isSystem(daemonSet.namespace) ? daemonSet : [];
  });
}

async function gather(parts: TemplateParts, key: string, signal: AbortSignal): Promise<Result> {
  const { memory } = parts;
  const daemonSet = parts.daemonSets.get(key);
  if (daemonSet === undefined) {
    memory.forget(key);
    leaveAlone(parts, key);
    return { outcome: 'unchanged' };
  }
  const namespace = parts.namespaces.get(daemonSet.namespace);
  // The event of the namespace will follow and queue its DaemonSets.
  if (namespace === undefined) return { outcome: 'waiting' };
  const record = memory.of(key, daemonSet.uid);
  // The watch does not show the last write yet. The event of that write queues the DaemonSet again.
  const behind = behindMs(record, daemonSet, parts.clock.monotonic());
  if (behind > 0) return { outcome: 'unchanged', againInMs: behind };
  const settings = settingsFor(parts.settings(), { namespace, labels: daemonSet.template.labels });
  const subject = readDaemonSetSubject(daemonSet, namespace, settings);
  const { skipped } = subject;
  if (skipped === undefined) return serve(parts, { key, daemonSet, record, subject, settings, signal });
  if (skipped === 'too-large') {
    for (const problem of tooLargeProblems(daemonSet.template))
      parts.announcer.report(record, regardingDaemonSet(daemonSet), problem);
  }
  memory.remember(key, record, { subjectKey: keyOf(subject), settings }, { kind: 'skip', reason: skipped });
  leaveAlone(parts, key);
  return { outcome: 'unchanged' };
}

/** Lets nobody wait for a DaemonSet that is gone, or that archaware leaves alone. */
function leaveAlone(parts: TemplateParts, key: string): void {
  forgetRollout(parts.turn, key);
  served(parts, key);
  parts.onDecided(key);
}

/** Serves a template: repairs the record, decides, writes, and gives the list of tolerations back to its author. */
async function serve(parts: TemplateParts, at: TemplateCase): Promise<Result> {
  const { key, daemonSet, record, settings, signal } = at;
  parts.turn.leftAlone.delete(key);
  if (onlyObserves(settings)) return decideAndWrite(parts, at);
  const found = await recordAgain(parts, at);
  if ('outcome' in found) return found;
  const result = await decideAndWrite(parts, { ...at, daemonSet: found.daemonSet });
  if (result === WAITS_FOR_TURN || parts.givesBack === false) return result;
  if (result.outcome === 'written' || result.outcome === 'conflict') return result;
  const { resourceVersion, againInMs } = await giveBackAtSight(parts, record, daemonSet, signal);
  if (resourceVersion !== undefined) wrote(parts, at, resourceVersion);
  const due = [result.againInMs, againInMs, found.againInMs].filter((ms) => ms !== undefined);
  return due.length === 0 ? result : { ...result, againInMs: Math.min(...due) };
}

async function decideAndWrite(parts: TemplateParts, at: TemplateCase): Promise<Result> {
  const { key, daemonSet, record, settings } = at;
  const acted = await actOnStop(parts, at);
  if (acted !== undefined) {
    if (!isUnprovenNow(parts.turn, key)) parts.onDecided(key);
    // Once its author changes it, it is decided again. Until then a taint would cut it off.
    parts.unserved.set(key, { architectures: undefined, why: 'in-line', answer: '' });
    return acted;
  }
  const decision = await decideForTemplate(parts, at);
  const { namespace } = daemonSet;
  // The controller removes extra tolerations from templates, so no Event reports them as stale.
  const template = { ...daemonSet.template, tolerations: undefined };
  for (const problem of [
    ...problemsOf(template, namespace, decision, settings),
    ...secretProblems(parts.images.unusableSecrets(namespace, template.pullSecrets)),
  ]) {
    parts.announcer.report(record, regardingDaemonSet(daemonSet), problem);
  }
  if (decision.kind === 'wait' && decision.failed.length > 0) parts.onDecided(key);
  const result = await carryOut(parts, at, decision);
  const isDone = result.outcome !== 'conflict' && result.outcome !== 'waiting';
  if (isDone && !isUnprovenNow(parts.turn, key)) parts.onDecided(key);
  return result;
}

/**
 * Does what is done about a DaemonSet that did not come back: it is reported, and the change is taken back where that helps. Returns
 * undefined for a DaemonSet that is not stopped.
 */
async function actOnStop(parts: TemplateParts, at: TemplateCase): Promise<Result | undefined> {
  const { turn } = parts;
  const { key, daemonSet, record } = at;
  const verdict = verdictNow(turn, key);
  if (verdict?.kind !== 'stopped') return undefined;
  const { taints } = parts.settings();
  const wasTakenBack = isTakenBack(daemonSet);
  const state = { isMissing: verdict.missing, isTakenBack: wasTakenBack, isPaused: isPaused(turn) };
  const regarding = regardingDaemonSet(daemonSet);
  const note = stoppedNote(daemonSet, { ...state, stopsAll: stopsAll(turn).includes(key) });
  parts.announcer.report(record, regarding, { reason: 'RolloutStopped', action: 'Placing', note });
  if (wasTakenBack || !verdict.missing || !canTakeBack(daemonSet, parts.nodes(), taints)) return { outcome: 'held' };
  const undo = takesBack(turn, key, daemonSet.generation + 1);
  try {
    const written = await send(parts, at, takeBack(daemonSet, parts.liveTaints(), taints));
    if (written.kind !== 'written') {
      undo();
      return { outcome: 'conflict' };
    }
    wrote(parts, at, readDaemonSet(written.object).resourceVersion);
  } catch (error) {
    // Without an answer it may be carried out yet; the next try shows that.
    if (!isRefusal(error)) throw error;
    undo();
    parts.noteRefusal(record, regarding, error);
    throw error;
  }
  return { outcome: 'written', detail: 'template as its author wrote it: the rollout did not come back' };
}
