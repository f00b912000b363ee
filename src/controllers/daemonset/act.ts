import type { Result } from '../../kube/control-loop.ts';
import { isRefusal } from '../../kube/errors.ts';
import type { WriteResult } from '../../kube/writer.ts';
import { ARCHITECTURE_LABEL, TOLERATIONS_ANNOTATION } from '../../names.ts';
import type { Decision, Placement } from '../../placement/decide.ts';
import { type DaemonSet, GUESSED, readDaemonSet, readRecord } from '../../placement/objects/daemonset.ts';
import { awaited, rolloutOf, withRollout } from '../../placement/objects/rollout-record.ts';
import { isIn } from '../../placement/patch/affinity.ts';
import { daemonSetPatch } from '../../placement/patch/patch.ts';
import { onlyObserves, placingText, templateRequires, wantedTolerations } from '../../placement/placing.ts';
import { decisionNote } from '../../placement/reasons.ts';
import type { Want } from '../../placement/rollout/brake.ts';
import { decideTemplate, type TemplateDecision } from '../../placement/rollout/template.ts';
import { recordBasis } from '../../placement/standing.ts';
import { regardingDaemonSet } from '../announce.ts';
import type { Contention } from '../contention.ts';
import { answered, HELD_AGAIN_MS, type Memory, OPEN_AGAIN_MS } from '../memory.ts';
import { note, type ObjectRecord } from '../object-record.ts';
import type { NoteRefusal } from '../refusals.ts';
import { NO_ROOM_AGAIN_MS } from '../waiting.ts';
import type { DaemonSetControllerOptions } from './contract.ts';
import type { Ownership } from './give-back.ts';
import type { RolloutTurn } from './rollout.ts';
import type { TemplateCase } from './template-decision.ts';
import type { Unserved } from './unserved.ts';

type ActParts = Pick<DaemonSetControllerOptions, 'daemonSets' | 'liveTaints' | 'isPaced' | 'clock'> & {
  readonly memory: Memory;
  readonly ownership: Ownership;
  readonly turn: RolloutTurn;
  readonly unserved: Unserved;
  readonly writer: TemplateWriter;
};

/** How often a DaemonSet in line is checked for its turn. A change of any DaemonSet also leads to a check of the next one. */
export const TURN_AGAIN_MS = 15_000;
export const WAITS_FOR_TURN: Result = { outcome: 'waiting', againInMs: TURN_AGAIN_MS };

/** Creates the functions that carry out the decision about a template and remember it. */
export function createAct(parts: ActParts): (at: TemplateCase, decision: Decision) => Promise<Result> | Result {
  const { memory, turn, unserved, writer, clock } = parts;

  function keep({ key, record, subject, settings }: TemplateCase, decision: Decision): boolean {
    return memory.remember(key, record, { subjectKey: subject.key, settings }, decision);
  }

  async function place(at: TemplateCase, decision: Placement): Promise<Result> {
    const { key, daemonSet, record, subject, settings } = at;
    const againInMs = decision.unknown.length > 0 ? OPEN_AGAIN_MS : undefined;
    const wanted = wantedTolerations(settings, decision.architectures);
    // A guess changes nothing in the record.
    const guessed = () => readRecord(daemonSet.recorded).basis ?? GUESSED;
    const basis = decision.unknown.length > 0 ? guessed() : recordBasis(subject);
    const requires = templateRequires(settings, decision);
    const change = decideTemplate(daemonSet, wanted, parts.liveTaints(), basis, requires);
    const lacks = (why: Want, answer = '') =>
      unserved.lacks(key, { architectures: wanted.map(({ value }) => value), why, answer });
    if (change.kind === 'unchanged') {
      unserved.served(key);
      keep(at, decision);
      return { outcome: 'unchanged', againInMs };
    }
    const waitMs = writer.contestedMs(record, daemonSet, change);
    if (waitMs > 0) {
      lacks('contested');
      return { outcome: 'conflict', againInMs: waitMs };
    }
    if (change.rolls && parts.isPaced && !turn.take(key, daemonSet)) {
      keep(at, decision);
      lacks('in-line');
      return WAITS_FOR_TURN;
    }
    let written: WriteResult;
    try {
      written = await writer.write(at, change);
    } catch (error) {
      if (isRefusal(error)) lacks('refused', error.message);
      else lacks('failed');
      throw error;
    }
    if (written.kind === 'conflict') {
      lacks('failed');
      return { outcome: 'conflict' };
    }
    if (written.kind === 'gone') return { outcome: 'unchanged' };
    // Only the watch shows whether a webhook took the tolerations out of the same write.
    if (change.rolls && written.kind === 'written') lacks('failed');
    else unserved.served(key);
    keep(at, decision);
    if (written.kind === 'written' && !(await takeOver(at, written.object))) return { outcome: 'conflict' };
    const required = requires.length > 0 ? [isIn(ARCHITECTURE_LABEL, requires)] : [];
    const detail = `template ${placingText({ tolerations: wanted, affinity: { required, preferred: [] } })}`;
    return { outcome: 'written', againInMs, detail };
  }

  /** Takes the answer to a write over, and gives the list of tolerations back. False if the write changed nothing. */
  async function takeOver(
    { key, daemonSet, record, signal }: TemplateCase,
    object: Parameters<typeof readDaemonSet>[0],
  ): Promise<boolean> {
    const answer = readDaemonSet(object);
    if (answer.resourceVersion === daemonSet.resourceVersion) return false;
    const resourceVersion = await parts.ownership.afterWrite(record, answer, signal);
    answered(record, resourceVersion, parts.daemonSets.get(key), clock.monotonic());
    return true;
  }

  return (at, decision) => {
    const { key, daemonSet, settings } = at;
    if (decision.kind !== 'place' || onlyObserves(settings)) unserved.served(key);
    switch (decision.kind) {
      case 'wait': {
        const isReported = keep(at, decision);
        return { outcome: 'waiting', againInMs: isReported ? decision.againInMs : NO_ROOM_AGAIN_MS };
      }
      case 'hold': {
        keep(at, decision);
        const detail = decisionNote(decision, daemonSet.template.os, settings.schedulable);
        return { outcome: 'held', againInMs: HELD_AGAIN_MS, detail };
      }
      case 'place':
        if (!onlyObserves(settings)) return place(at, decision);
        keep(at, decision);
        return { outcome: 'unchanged', againInMs: decision.unknown.length > 0 ? OPEN_AGAIN_MS : undefined };
      default:
        return decision satisfies never;
    }
  };
}

/** A change of a template, or of its record alone. */
export type Change = Extract<TemplateDecision, { kind: 'set' }>;

/** Returns what the Event says about a change that another writer keeps undoing. */
function contestedNote({ template }: DaemonSet, { tolerations, rolls }: Change): string {
  const again = 'three times in ten minutes';
  if (!rolls)
    return `another writer changed the annotation ${TOLERATIONS_ANNOTATION} ${again}: it must leave this annotation alone`;
  return tolerations.length < (template.tolerations ?? []).length
    ? `another writer added tolerations of archaware's taint to the template ${again}, and its images do not run there: remove them from the source of the template`
    : `another writer removed archaware's tolerations from the template ${again}: add them to the source of the template`;
}

/** Returns what two writes of the same change have in common, whichever rollout they begin. */
export function intentOf({ recorded }: Change): string {
  return withRollout(recorded, undefined) ?? '';
}

/** Returns a change whose record says which generation it leads to, and whether that rollout is waited for. */
function begun({ generation, rolledOut, recorded }: DaemonSet, change: Change): Change {
  if (!change.rolls) return change;
  // A second write does not end the wait for the first one.
  const isAwaited = rolledOut || rolloutOf(readRecord(recorded).basis?.rollout, generation) === 'awaited';
  return { ...change, recorded: withRollout(change.recorded, isAwaited ? awaited(generation + 1) : undefined) };
}

/** Whether a write has changed the spec. A webhook may have taken the change out of it. */
function hasRolled({ generation }: DaemonSet, written: WriteResult): boolean {
  return written.kind === 'written' && readDaemonSet(written.object).generation !== generation;
}

type TemplateWriterParts = Pick<DaemonSetControllerOptions, 'write' | 'fetchDaemonSet'> & {
  readonly turn: RolloutTurn;
  readonly contention: Contention;
  readonly noteRefusal: NoteRefusal;
};

/** Writes changes of templates. */
type TemplateWriter = ReturnType<typeof createTemplateWriter>;

/** Creates the writer of templates. */
export function createTemplateWriter(parts: TemplateWriterParts) {
  const { turn, contention } = parts;

  /**
   * Gives the turn to the next DaemonSet. `isSure`: false where the write may have been carried out, or the DaemonSet may roll already: a
   * cache may be stale, the turn may not.
   */
  async function passOn({ key, daemonSet, signal }: TemplateCase, isSure: boolean): Promise<void> {
    if (!isSure) turn.shows(key, await parts.fetchDaemonSet(daemonSet, signal));
    turn.giveBack(key);
  }

  function contestedMs(record: ObjectRecord, daemonSet: DaemonSet, change: Change): number {
    const said = { action: 'Placing', note: contestedNote(daemonSet, change) };
    return contention.waitMs(record, intentOf(change), regardingDaemonSet(daemonSet), said);
  }

  return {
    /** Returns the milliseconds to leave a DaemonSet alone because another writer keeps undoing this change; 0: write. */
    contestedMs,
    /**
     * Writes a change. If the DaemonSet does not roll by it after all, its turn goes to the next one. Throws the API server's refusal.
     */
    async write(at: TemplateCase, change: Change): Promise<WriteResult> {
      const { daemonSet, record, signal } = at;
      const { namespace, name } = daemonSet;
      const target = { kind: 'DaemonSet', namespace, name, action: 'tolerate' } as const;
      let written: WriteResult;
      try {
        written = await parts.write(target, daemonSetPatch(daemonSet, begun(daemonSet, change)), signal);
      } catch (error) {
        // Without an answer the turn stays: the next try, or the watch, shows what became of the write.
        if (!isRefusal(error)) throw error;
        parts.noteRefusal(record, regardingDaemonSet(daemonSet), error);
        if (change.rolls) await passOn(at, error.status < 500);
        throw error;
      }
      // A change of the record alone did not take the turn.
      if (change.rolls && !hasRolled(daemonSet, written)) await passOn(at, written.kind !== 'conflict');
      if (written.kind === 'written') contention.wrote(record, intentOf(change));
      if (written.kind !== 'conflict') note(record, 'refused', undefined);
      return written;
    },
  };
}
