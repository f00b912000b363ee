import { type Clock, doubled } from '../kit/clock.ts';
import { type ApiError, concernsObject, mayBeWrongStatus } from '../kube/errors.ts';
import type { Regarding } from '../kube/events.ts';
import type { Problem } from '../placement/object-problems.ts';
import { type Announcer, createAnnouncer } from './announce.ts';
import type { WritingOptions } from './controller-options.ts';
import { idOf, note, type ObjectRecord } from './memory.ts';

/**
 * Records a refused write of an object. Returns true once the same refusal has lasted so long that it counts as permanent, since a
 * short one proves nothing. It is then forgotten, because the caller goes on with a smaller write.
 */
type NoteRefusal = (record: ObjectRecord, regarding: Regarding, error: ApiError) => boolean;

type RefusalsOptions = Pick<WritingOptions, 'clock' | 'onRefused' | 'lastWriteMs'> & { readonly announcer: Announcer };

/** A refusal gets an Event when it lasts longer than the start of an API server. */
const ANNOUNCED_MS = 5_000;
const FOR_GOOD_MS = 60_000;
/** The least number of attempts within that time: two attempts with a long pause between them prove nothing. */
const LEAST_TRIES = 3;

const COMPARED = 512;

/** Returns what makes two refusals the same. A 500 says only in its message what is wrong. */
function whatOf(error: ApiError): string {
  const { status, reason, message } = error;
  return mayBeWrongStatus(error) ? `${status} ${message.slice(0, COMPARED)}` : `${status} ${reason}`;
}

/** Creates the judge of refusals. A write that succeeds must end what is noted as `refused`. */
export function createRefusals({ announcer, clock, onRefused, lastWriteMs }: RefusalsOptions): NoteRefusal {
  /** Whether a refusal that has lasted is about the object, and not about the API server: then no write would succeed. */
  function isAboutObject(error: ApiError, since: number, now: number): boolean {
    if (concernsObject(error)) return true;
    const last = lastWriteMs?.();
    return mayBeWrongStatus(error) && last !== undefined && last > since && now - last < FOR_GOOD_MS;
  }

  return (record, regarding, error) => {
    onRefused?.();
    const now = clock.monotonic();
    const what = whatOf(error);
    const known = record.notes?.refused;
    const { since, count } = known?.what === what ? known : { since: now, count: 0 };
    const tries = count + 1;
    const lasted = now - since;
    if (lasted >= ANNOUNCED_MS) {
      const said = `the API server refuses the change, and the controller tries again: ${error.message}`;
      announcer.report(record, regarding, { reason: 'WriteRefused', action: 'Placing', note: said });
    }
    const isForGood = lasted >= FOR_GOOD_MS && tries >= LEAST_TRIES && isAboutObject(error, since, now);
    note(record, 'refused', isForGood ? undefined : { what, since, count: tries });
    return isForGood;
  };
}

/** What a controller notices about its writes, and says about its objects. */
export type Notices = ReturnType<typeof createNotices>;

/** Creates this for a term: what is said, which writes are undone by others, and which are refused. */
export function createNotices(options: WritingOptions) {
  const announcer = createAnnouncer(options.events, options.clock);
  return {
    announcer,
    contention: createContention(announcer, options.clock),
    noteRefusal: createRefusals({ ...options, announcer }),
  };
}

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
