import { isRefusal } from '../../kube/errors.ts';
import type { WriteResult, Writer } from '../../kube/writer.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { daemonSetPatch } from '../../placement/patch/patch.ts';
import type { Contention } from '../contention.ts';
import { note, type ObjectRecord } from '../object-record.ts';
import type { NoteRefusal } from '../refusals.ts';
import { begun, type Change, contestedNote, hasRolled, intentOf, regarding } from './change.ts';
import type { DaemonSetControllerOptions } from './contract.ts';
import type { RolloutTurn } from './rollout.ts';
import type { TemplateCase } from './template-decision.ts';

type TemplateWriterParts = {
  readonly write: Writer;
  readonly fetchDaemonSet: DaemonSetControllerOptions['fetchDaemonSet'];
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
    return contention.waitMs(record, intentOf(change), regarding(daemonSet), said);
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
        parts.noteRefusal(record, regarding(daemonSet), error);
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
