import type { Clock } from '../kit/clock.ts';
import { type ApiError, concernsObject, mayBeWrongStatus } from '../kube/errors.ts';
import type { Regarding } from '../kube/events.ts';
import type { Announcer } from './announce.ts';

/** Remembers for which objects the API server refuses writes, and since when. A short refusal proves nothing. */
export type Refusals = {
  /**
   * Records a refused write. Returns true once the same refusal has lasted so long that it counts as permanent. The record is
   * then dropped, because the caller goes on with a smaller write.
   */
  note(key: string, regarding: Regarding, error: ApiError): boolean;
  /** Call it when a write of the object succeeded, or when the object is gone. */
  forget(key: string): void;
};

export type RefusalsOptions = {
  readonly announcer: Announcer;
  readonly clock: Clock;
  /** Called once for each refused write. */
  readonly onRefused?: (() => void) | undefined;
  /**
   * Returns when a write of any object, the Lease included, last succeeded, in milliseconds on the monotonic clock. Absent: not
   * known, and then a 500 never counts as permanent.
   */
  readonly lastWriteMs?: (() => number | undefined) | undefined;
};

type Record = { readonly what: string; readonly since: number; count: number };

/** A refusal gets an Event when it lasts longer than the start of an API server. */
const ANNOUNCED_MS = 5_000;
const FOR_GOOD_MS = 60_000;
/** The least number of attempts within that time: two attempts with a long pause between them prove nothing. */
const LEAST_TRIES = 3;

/** The most characters of a message that two refusals are compared by. */
const COMPARED = 512;

/** Returns what makes two refusals the same. A 500 says only in its message what is wrong. */
function whatOf(error: ApiError): string {
  const { status, reason, message } = error;
  return mayBeWrongStatus(error) ? `${status} ${message.slice(0, COMPARED)}` : `${status} ${reason}`;
}

/** Creates an empty memory, by object. */
export function createRefusals({ announcer, clock, onRefused, lastWriteMs }: RefusalsOptions): Refusals {
  const records = new Map<string, Record>();

  /** Whether a refusal that has lasted is about the object, and not about the API server: then no write would succeed. */
  function isAboutObject(error: ApiError, since: number, now: number): boolean {
    if (concernsObject(error)) return true;
    const last = lastWriteMs?.();
    return mayBeWrongStatus(error) && last !== undefined && last > since && now - last < FOR_GOOD_MS;
  }

  return {
    note(key, regarding, error) {
      onRefused?.();
      const now = clock.monotonic();
      const what = whatOf(error);
      const known = records.get(key);
      const record = known?.what === what ? known : { what, since: now, count: 0 };
      record.count++;
      records.set(key, record);
      const lasted = now - record.since;
      if (lasted >= ANNOUNCED_MS) {
        const note = `the API server refuses the change, and the controller tries again: ${error.message}`;
        announcer.report(key, { regarding, type: 'Warning', reason: 'WriteRefused', action: 'Placing', note });
      }
      const isLong = lasted >= FOR_GOOD_MS && record.count >= LEAST_TRIES;
      const isForGood = isLong && isAboutObject(error, record.since, now);
      if (isForGood) records.delete(key);
      return isForGood;
    },
    forget: (key) => void records.delete(key),
  };
}
