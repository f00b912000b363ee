import { isRefusal } from '../../kube/errors.ts';
import type { WriteResult } from '../../kube/writer.ts';
import { TOLERATIONS_ANNOTATION } from '../../names.ts';
import {
  type DaemonSet,
  GUESSED,
  type RecordBasis,
  readDaemonSet,
  readRecord,
} from '../../placement/objects/daemonset.ts';
import { awaited, rolloutOf, withRollout } from '../../placement/objects/rollout-record.ts';
import { daemonSetPatch } from '../../placement/patch/patch.ts';
import type { TemplateDecision } from '../../placement/rollout/template.ts';
import { regardingDaemonSet } from '../announce.ts';
import type { Contention } from '../contention.ts';
import { note, type ObjectRecord } from '../object-record.ts';
import type { NoteRefusal } from '../refusals.ts';
import type { DaemonSetControllerOptions } from './contract.ts';
import type { RolloutTurn } from './rollout.ts';
import type { TemplateCase } from './template-decision.ts';

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

/** Returns the basis to record for a guess: that of the present record, if there is one, because a guess changes nothing there. */
export function guessBasis({ recorded }: DaemonSet): RecordBasis {
  return readRecord(recorded).basis ?? GUESSED;
}

type TemplateWriterParts = Pick<DaemonSetControllerOptions, 'write' | 'fetchDaemonSet'> & {
  readonly turn: RolloutTurn;
  readonly contention: Contention;
  readonly noteRefusal: NoteRefusal;
};

/** Writes changes of templates. */
export type TemplateWriter = ReturnType<typeof createTemplateWriter>;

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
