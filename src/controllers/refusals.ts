import type { Clock } from '../kit/clock.ts';
import { type ApiError, concernsObject } from '../kube/errors.ts';
import type { Regarding } from '../kube/events.ts';
import type { Announcer } from './announce.ts';

/** Remembers whose writes the API server refuses, and since when: a passing error is not a verdict. */
export type Refusals = {
  /**
   * Notes a refused write. Gives true once the same refusal has lasted so long that it counts as one for good; then the next
   * refusal, of a lesser write, is another one.
   */
  note(key: string, regarding: Regarding, error: ApiError): boolean;
  /** A write of this object went through, or it is gone. */
  forget(key: string): void;
};

export type RefusalsOptions = {
  readonly announcer: Announcer;
  readonly clock: Clock;
  /** Called once for each refused write. */
  readonly onRefused?: (() => void) | undefined;
};

type Record = { readonly what: string; readonly since: number; count: number };

/** A refusal that lasts longer than an API server takes to start is worth an Event. */
const ANNOUNCED_MS = 5_000;
const FOR_GOOD_MS = 60_000;
/** Tries within that time, so that one long pause between two of them proves nothing. */
const LEAST_TRIES = 3;

/** Creates the memory of it, by object. */
export function createRefusals({ announcer, clock, onRefused }: RefusalsOptions): Refusals {
  const records = new Map<string, Record>();
  return {
    note(key, regarding, error) {
      onRefused?.();
      const now = clock.monotonic();
      const what = `${error.status} ${error.reason}`;
      const known = records.get(key);
      const record = known?.what === what ? known : { what, since: now, count: 0 };
      record.count++;
      records.set(key, record);
      const lasted = now - record.since;
      if (lasted >= ANNOUNCED_MS) {
        const note = `the API server refuses to change it, which is tried again: ${error.message}`;
        announcer.tell(key, { regarding, type: 'Warning', reason: 'WriteRefused', action: 'Placing', note });
      }
      const isForGood = concernsObject(error) && lasted >= FOR_GOOD_MS && record.count >= LEAST_TRIES;
      if (isForGood) records.delete(key);
      return isForGood;
    },
    forget: (key) => void records.delete(key),
  };
}
