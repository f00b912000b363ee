import { type ApiError, concernsObject, mayBeWrongStatus } from '../kube/errors.ts';
import type { Regarding } from '../kube/events.ts';
import { type Announcer, createAnnouncer } from './announce.ts';
import type { WritingOptions } from './common-options.ts';
import { createContention } from './contention.ts';
import { note, type ObjectRecord } from './object-record.ts';

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
