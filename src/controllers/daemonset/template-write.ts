import { type ApiError, isRefusal } from '../../kube/errors.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { WriteResult, Writer } from '../../kube/writer.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { daemonSetPatch } from '../../placement/patch/patch.ts';
import { type Toleration, tolerationText } from '../../placement/patch/tolerations.ts';
import { isUnfit, type Want } from '../../placement/rollout/brake.ts';
import type { Contention } from '../contention.ts';
import { note, type ObjectRecord } from '../object-record.ts';
import type { NoteRefusal } from '../refusals.ts';
import type { RefusedEntries } from '../refused-entries.ts';
import { begun, type Change, contestedNote, hasRolled, intentOf, regarding } from './change.ts';
import { partTaken } from './refused-tolerations.ts';
import type { RolloutTurn } from './rollout.ts';
import type { TemplateCase } from './template-decision.ts';

type TemplateWriterParts = {
  readonly daemonSets: Store<DaemonSet>;
  /** Returns the taints that nodes have, as `key:effect`. */
  readonly liveTaints: () => ReadonlySet<string>;
  readonly write: Writer;
  readonly turn: RolloutTurn;
  readonly entries: RefusedEntries;
  readonly contention: Contention;
  readonly noteRefusal: NoteRefusal;
};

/** Writes changes of templates. */
export type TemplateWriter = {
  /**
   * Writes a change. If the API server refuses a part of it, the rest is written before the refusal is thrown. If the DaemonSet does
   * not roll by it after all, its turn goes to the next one.
   */
  write(at: TemplateCase, change: Change, wanted: readonly Toleration[]): Promise<WriteResult>;
  /** Returns the milliseconds to leave a DaemonSet alone because another writer keeps undoing this change; 0: write. */
  contestedMs(record: ObjectRecord, daemonSet: DaemonSet, change: Change): number;
  /** Returns why a DaemonSet lacks its tolerations after this refusal. */
  whyRefused(daemonSet: DaemonSet, error: ApiError): Want;
};

/** Creates the writer of templates. */
export function createTemplateWriter(parts: TemplateWriterParts): TemplateWriter {
  const { daemonSets, turn, entries, contention } = parts;

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
    async write({ key, daemonSet, record, signal }, change, wanted) {
      const { namespace, name } = daemonSet;
      const target = { kind: 'DaemonSet', namespace, name, action: 'tolerate' } as const;
      let rolls = false;
      let isSure = true;
      const send = async (what: Change): Promise<WriteResult> => {
        const written = await parts.write(target, daemonSetPatch(daemonSet, begun(daemonSet, what)), signal);
        rolls = hasRolled(daemonSet, written);
        if (written.kind === 'written') contention.wrote(record, intentOf(what));
        return written;
      };
      try {
        const written = await send(change);
        if (written.kind === 'conflict') return written;
        note(record, 'refused', undefined);
        entries.took(namespace, wanted.map(tolerationText));
        return written;
      } catch (error) {
        isSure = isRefusal(error);
        if (!isRefusal(error)) throw error;
        const isForGood = parts.noteRefusal(record, regarding(daemonSet), error);
        // It says nothing about the tolerations, which other DaemonSets of the namespace need too.
        if (whyRefused(daemonSet, error) === 'unfit') throw error;
        const wish = { wanted, liveTaints: parts.liveTaints(), isForGood };
        const part = await partTaken(entries, daemonSet, wish, error, (patch) =>
          parts.write({ ...target, dryRun: true }, patch, signal),
        );
        if (part !== undefined && contestedMs(record, daemonSet, part) === 0) await send(part);
        throw error;
      } finally {
        // A change of the record alone did not take the turn.
        if (change.rolls && !rolls) turn.giveBack(key, isSure);
      }
    },
  };
}
