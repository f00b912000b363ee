import { createHash } from 'node:crypto';
import { type EventReason, FIELD_MANAGER } from '../names.ts';
import { NOTE_BYTES, printable } from '../placement/reasons.ts';
import type { ApiClient } from './client.ts';
import type { Clock } from './clock.ts';
import { isGone } from './errors.ts';
import { microTime } from './lease.ts';

/** The object that an Event is about. */
export type Regarding = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
};

/** What happened to it. The note is escaped and cut; it must not change from one occurrence to the next. */
export type Occurrence = {
  readonly regarding: Regarding;
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  /** What was being done, in the form that Events use: `Resolving`, `Placing`. */
  readonly action: string;
  readonly note: string;
};

/** Writes `events.k8s.io/v1` Events: the first of a kind at once, repetitions as a series. */
export type EventRecorder = {
  /** Never throws and never waits: an Event that cannot be written is dropped and counted in the log. */
  emit(occurrence: Occurrence): void;
  /** Resolves when what was emitted is written, or the signal aborts. */
  flush(signal: AbortSignal): Promise<void>;
};

export type EventOptions = {
  readonly client: ApiClient;
  readonly instance: string;
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  readonly onError?: (error: unknown) => void;
  readonly signal: AbortSignal;
};

type Series = { name: string; namespace: string; count: number; writtenAt: number; lastAt: number };

/** An Event refreshes its series this often, as client-go's recorder does. */
const REFRESH_MS = 30 * 60_000;
/** After so long without a repetition the next one is a new Event. */
const QUIET_MS = 6 * 60_000;
const MAX_QUEUED = 1_000;
const MAX_SERIES = 5_000;
const IN_FLIGHT = 4;

/** Creates the recorder. Events go out beside everything else, a few at a time, so that they never delay a placement. */
export function createEvents({ client, instance, mayWrite, clock, onError, signal }: EventOptions): EventRecorder {
  const series = new Map<string, Series>();
  const queue: Occurrence[] = [];
  let running = 0;
  let drained: (() => void)[] = [];

  async function write(occurrence: Occurrence): Promise<void> {
    const { regarding, type, reason, action, note } = occurrence;
    const key = JSON.stringify([type, action, reason, regarding, note]);
    const now = clock.wall();
    const known = series.get(key);
    if (known !== undefined && now - known.lastAt < QUIET_MS) {
      known.count++;
      known.lastAt = now;
      if (known.count > 2 && now - known.writtenAt < REFRESH_MS) return;
      if (await repeat(known, now)) return;
    }
    const namespace = regarding.namespace ?? 'default';
    // A name of its own for each occurrence: an Event of an earlier process about the same must not be in the way.
    const digest = createHash('sha256').update(`${key} ${instance} ${now}`).digest('hex').slice(0, 16);
    const name = `${regarding.name.slice(0, 200)}.${digest}`;
    await client.request('create', `${collection(namespace)}?fieldManager=${FIELD_MANAGER}`, {
      signal,
      body: {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name, namespace },
        eventTime: microTime(now),
        reportingController: FIELD_MANAGER,
        reportingInstance: instance.slice(0, 128),
        type,
        reason,
        action,
        note: printable(note, NOTE_BYTES),
        regarding,
      },
    });
    if (series.size >= MAX_SERIES) series.delete(series.keys().next().value ?? '');
    series.set(key, { name, namespace, count: 1, writtenAt: now, lastAt: now });
  }

  async function repeat(known: Series, now: number): Promise<boolean> {
    try {
      await client.request('patch', `${collection(known.namespace)}/${known.name}?fieldManager=${FIELD_MANAGER}`, {
        signal,
        contentType: 'application/merge-patch+json',
        body: { series: { count: known.count, lastObservedTime: microTime(now) } },
      });
      known.writtenAt = now;
      return true;
    } catch (error) {
      // Events expire on the server, by default after an hour: write a new one.
      if (isGone(error)) return false;
      throw error;
    }
  }

  async function drain(): Promise<void> {
    running++;
    for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
      if (!mayWrite()) continue;
      try {
        await write(next);
      } catch (error) {
        if (!signal.aborted) onError?.(error);
      }
    }
    running--;
    if (running === 0) for (const resolve of drained.splice(0)) resolve();
  }

  return {
    emit(occurrence) {
      if (signal.aborted || queue.length >= MAX_QUEUED) return;
      queue.push(occurrence);
      if (running < IN_FLIGHT) void drain();
    },
    async flush(until) {
      if (running === 0 || until.aborted) return;
      await new Promise<void>((resolve) => {
        drained = [...drained, resolve];
        until.addEventListener('abort', () => resolve(), { once: true });
      });
    },
  };
}

function collection(namespace: string): string {
  return `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
}
