import { type Clock, doubled } from '../kit/clock.ts';
import type { Regarding } from '../kube/events.ts';
import type { Announcer, Problem } from './announce.ts';
import { idOf, note, type ObjectRecord } from './object-record.ts';

const WINDOW_MS = 10 * 60_000;
const UNDONE = 3;
const CAP_MS = 24 * 60 * 60_000;

/**
 * Creates the detector of contention, which keeps its state in the records of objects. It notices when another writer keeps undoing
 * archaware's writes, and stops writing before the two overload the cluster.
 */
export function createContention(announcer: Announcer, { monotonic }: Pick<Clock, 'monotonic'>) {
  return {
    /**
     * Returns the milliseconds to leave an object alone because another writer keeps undoing the write with this intent; 0: write.
     * Writes the Event `WriteContested` when that begins.
     */
    waitMs(record: ObjectRecord, intent: string, regarding: Regarding, said: Pick<Problem, 'action' | 'note'>): number {
      const [now, known] = [monotonic(), record.notes?.contested];
      if (known?.intent !== idOf(intent)) return 0;
      if (known.blockedUntil > now) return known.blockedUntil - now;
      const quietMs = now - (known.writes.at(-1) ?? now);
      const blocks = quietMs > WINDOW_MS * 2 ** known.blocks ? 0 : known.blocks;
      // After a contention was noticed, one more undone write shows that it goes on.
      const allowed = blocks === 0 ? UNDONE : 1;
      const writes = blocks === 0 ? known.writes.filter((at) => now - at < WINDOW_MS) : known.writes;
      // If the same write is wanted again, every earlier one was undone.
      if (writes.length < allowed) {
        note(record, 'contested', { ...known, writes, blocks });
        return 0;
      }
      const waitMs = doubled(blocks, WINDOW_MS, CAP_MS);
      note(record, 'contested', { ...known, writes: [], blocks: blocks + 1, blockedUntil: now + waitMs });
      announcer.report(record, regarding, { reason: 'WriteContested', ...said });
      return waitMs;
    },
    /** Records that the write was sent. */
    wrote(record: ObjectRecord, intent: string): void {
      const [now, id] = [monotonic(), idOf(intent)];
      const known = record.notes?.contested;
      const before = known?.intent === id ? known : { intent: id, writes: [], blockedUntil: 0, blocks: 0 };
      note(record, 'contested', { ...before, writes: [...before.writes, now] });
    },
    /** Counts the objects that are left alone now. */
    count(records: Iterable<ObjectRecord>): number {
      const now = monotonic();
      let count = 0;
      for (const { notes } of records) if ((notes?.contested?.blockedUntil ?? 0) > now) count++;
      return count;
    },
  };
}
