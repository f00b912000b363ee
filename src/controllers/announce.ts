import type { Clock } from '../kube/clock.ts';
import type { EventRecorder, Occurrence } from '../kube/events.ts';

/** Tells of an object's troubles, each once, and again from time to time while they last. */
export type Announcer = {
  tell(key: string, occurrence: Occurrence): void;
  /** The object is gone or has no troubles any more. */
  forget(key: string): void;
};

/** Events expire after an hour by default: what still holds is told again before that. */
const RETELL_MS = 30 * 60_000;

/** Creates the announcer. */
export function createAnnouncer(events: Pick<EventRecorder, 'emit'>, clock: Clock): Announcer {
  const told = new Map<string, Map<string, number>>();
  return {
    tell(key, occurrence) {
      const now = clock.monotonic();
      const notes = told.get(key) ?? new Map<string, number>();
      const id = `${occurrence.reason} ${occurrence.note}`;
      const last = notes.get(id);
      if (last !== undefined && now - last < RETELL_MS) return;
      notes.set(id, now);
      told.set(key, notes);
      events.emit(occurrence);
    },
    forget: (key) => told.delete(key),
  };
}
