import { type ApiError, isRefusal } from '../../kube/errors.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { WriteResult, Writer } from '../../kube/writer.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { daemonSetPatch } from '../../placement/patch/patch.ts';
import { isUnfit, type Want } from '../../placement/rollout/brake.ts';
import type { Contention } from '../contention.ts';
import { note, type ObjectRecord } from '../object-record.ts';
import type { NoteRefusal } from '../refusals.ts';
import { begun, type Change, contestedNote, hasRolled, intentOf, regarding } from './change.ts';
import type { RolloutTurn } from './rollout.ts';
import type { TemplateCase } from './template-decision.ts';

type TemplateWriterParts = {
  readonly daemonSets: Store<DaemonSet>;
  readonly write: Writer;
  readonly turn: RolloutTurn;
  readonly contention: Contention;
  readonly noteRefusal: NoteRefusal;
};

/** Writes changes of templates. */
export type TemplateWriter = {
  /**
   * Writes a change. If the DaemonSet does not roll by it after all, its turn goes to the next one. Throws the API server's refusal.
   */
  write(at: TemplateCase, change: Change): Promise<WriteResult>;
  /** Returns the milliseconds to leave a DaemonSet alone because another writer keeps undoing this change; 0: write. */
  contestedMs(record: ObjectRecord, daemonSet: DaemonSet, change: Change): number;
  /** Returns why a DaemonSet lacks its tolerations after this refusal. */
  whyRefused(daemonSet: DaemonSet, error: ApiError): Want;
};

/** Creates the writer of templates. */
export function createTemplateWriter(parts: TemplateWriterParts): TemplateWriter {
  const { daemonSets, turn, contention } = parts;

  function whyRefused({ namespace, name, recorded }: DaemonSet, error: ApiError): Want {
    const isLarge = daemonSets.get(`${namespace}/${name}`)?.isLarge === true;
    return isUnfit(error, { isLarge, isRecorded: recorded !== undefined }) ? 'unfit' : 'refused';
  }

  function contestedMs(record: ObjectRecord, daemonSet: DaemonSet, change: Change): number {
    const said = { action: 'Placing', note: contestedNote(daemonSet, change) };
    return contention.waitMs(record, intentOf(change), regarding(daemonSet), said);
  }

  return {
    whyRefused,
    contestedMs,
    async write({ key, daemonSet, record, signal }, change) {
      const { namespace, name } = daemonSet;
      const target = { kind: 'DaemonSet', namespace, name, action: 'tolerate' } as const;
      let rolls = false;
      let isSure = true;
      try {
        const written = await parts.write(target, daemonSetPatch(daemonSet, begun(daemonSet, change)), signal);
        rolls = hasRolled(daemonSet, written);
        if (written.kind === 'written') contention.wrote(record, intentOf(change));
        if (written.kind !== 'conflict') note(record, 'refused', undefined);
        return written;
      } catch (error) {
        isSure = isRefusal(error);
        if (isRefusal(error)) parts.noteRefusal(record, regarding(daemonSet), error);
        throw error;
      } finally {
        // A change of the record alone did not take the turn.
        if (change.rolls && !rolls) turn.giveBack(key, isSure);
      }
    },
  };
}
