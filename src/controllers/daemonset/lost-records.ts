import { isRefusal } from '../../kube/errors.ts';
import { type DaemonSet, readDaemonSet } from '../../placement/objects/daemonset.ts';
import { daemonSetPatch } from '../../placement/patch/patch.ts';
import { foundAgain, lostTolerations } from '../../placement/rollout/lost-record.ts';
import type { Settings } from '../../placement/settings.ts';
import type { WritingOptions } from '../common-options.ts';
import { note, type ObjectRecord } from '../object-record.ts';

type Change = ReturnType<typeof foundAgain>;

/** What was found: a record was written, or (in `plan`) would be, and then the DaemonSet as it would be. */
type FoundAgain =
  | { readonly kind: 'written'; readonly resourceVersion: string }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'recorded'; readonly daemonSet: DaemonSet };

/** Writes the records of templates again that have archaware's tolerations and whose record somebody removed. */

type LostRecordsOptions = Pick<WritingOptions, 'write' | 'clock' | 'onRefused'> & {
  /** Returns the milliseconds to leave a DaemonSet alone because another writer keeps undoing this change; 0: write. */
  readonly contestedMs: (record: ObjectRecord, daemonSet: DaemonSet, change: Change) => number;
  /** Called after a change was written. */
  readonly onWritten: (record: ObjectRecord, change: Change) => void;
};

/** How long a refused record is left alone. The policies of an earlier version refuse it. */
const REFUSED_MS = 10 * 60_000;

/** Creates the functions that write the records of templates again that have archaware's tolerations and whose record somebody removed. */
export function createLostRecords({ write, clock, contestedMs, ...options }: LostRecordsOptions) {
  return {
    /** Undefined if no record is lost, or if it cannot be written now: the template is decided without it. */
    async write(
      record: ObjectRecord,
      daemonSet: DaemonSet,
      { taints }: Settings,
      signal: AbortSignal,
    ): Promise<FoundAgain | undefined> {
      const lost = lostTolerations(daemonSet, taints);
      if (clock.monotonic() < (record.notes?.unrecordedUntil ?? 0) && lost.length > 0) return undefined;
      note(record, 'unrecordedUntil', undefined);
      if (lost.length === 0) return undefined;
      const { namespace, name } = daemonSet;
      const change = foundAgain(daemonSet, lost, taints);
      const waitMs = contestedMs(record, daemonSet, change);
      if (waitMs > 0) {
        note(record, 'unrecordedUntil', clock.monotonic() + waitMs);
        return undefined;
      }
      try {
        const target = { kind: 'DaemonSet', namespace, name, action: 'tolerate' } as const;
        const written = await write(target, daemonSetPatch(daemonSet, change), signal);
        if (written.kind === 'recorded')
          return { kind: 'recorded', daemonSet: { ...daemonSet, recorded: change.recorded } };
        if (written.kind === 'conflict') return written;
        if (written.kind === 'gone') return undefined;
        options.onWritten(record, change);
        return { kind: 'written', resourceVersion: readDaemonSet(written.object).resourceVersion };
      } catch (error) {
        if (!isRefusal(error)) throw error;
        // The component without-taints takes the right away on purpose.
        if (error.status !== 403) options.onRefused?.();
        note(record, 'unrecordedUntil', clock.monotonic() + REFUSED_MS);
        return undefined;
      }
    },
    /** Returns the milliseconds until a record that could not be written is tried again; undefined: there is none. */
    againInMs(record: ObjectRecord): number | undefined {
      const until = record.notes?.unrecordedUntil;
      return until === undefined ? undefined : Math.max(0, until - clock.monotonic());
    },
  };
}
