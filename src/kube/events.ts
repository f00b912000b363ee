import { createHash } from 'node:crypto';
import { onAbort, until } from '../kit/abort.ts';
import type { Clock } from '../kit/clock.ts';
import { createFairQueue } from '../kit/fairness/fair-queue.ts';
import { printable } from '../kit/printable.ts';
import { type EventReason, FIELD_MANAGER, NOTE_BYTES } from '../names.ts';
import type { ApiClient } from './api-client.ts';
import { microTime } from './lease.ts';

/** The object that an Event is about. */
export type Regarding = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
};

/** What happened to the object. The note is escaped and cut. */
export type Occurrence = {
  readonly regarding: Regarding;
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  /** What the controller was doing, in the form that Events use: `Resolving`, `Placing`. */
  readonly action: string;
  readonly note: string;
};

/** Writes `events.k8s.io/v1` Events. The caller decides how often a problem that lasts is reported (`controllers/announce.ts`). */
export type EventRecorder = ReturnType<typeof createEvents>;

export type EventOptions = {
  readonly client: ApiClient;
  readonly instance: string;
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  readonly onError?: (error: unknown) => void;
  readonly onDrop?: () => void;
  /** Called once a minute with the number of dropped occurrences, if there were any. */
  readonly onDropped?: (count: number) => void;
  readonly signal: AbortSignal;
};

const MAX_QUEUED = 1_000;
/** The most waiting Events of one namespace: a namespace that floods the queue must not displace the Events of others. */
const MAX_QUEUED_OF_NAMESPACE = MAX_QUEUED / 4;
/** The number of Events of each namespace that are accepted even if other namespaces have filled the queue. */
const ALWAYS_OF_NAMESPACE = 8;
/** The most occurrences about one object within this time. */
const MAX_OF_OBJECT = 16;
const OBJECT_MS = 10 * 60_000;
const MAX_OBJECTS = 5_000;
const DROPPED_MS = 60_000;
const IN_FLIGHT = 4;

/**
 * Creates the recorder. Events are written in parallel to all other work, a few at a time and with the namespaces
 * taking turns, so that they delay neither a placement nor each other.
 */
export function createEvents(options: EventOptions) {
  const { client, instance, mayWrite, clock, onError, signal } = options;
  const queue = createFairQueue<Occurrence>();
  /** How many Events each object had, and since when they are counted. */
  const objects = new Map<string, { since: number; count: number }>();
  let dropped = 0;
  let running = 0;
  const drained: (() => void)[] = [];

  async function write({ regarding, ...what }: Occurrence): Promise<void> {
    const now = clock.wall();
    const namespace = regarding.namespace ?? 'default';
    const id = createHash('sha256')
      .update(JSON.stringify([regarding, what, instance, now]))
      .digest('hex');
    const name = `${regarding.name.slice(0, 200)}.${id.slice(0, 16)}`;
    const events = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
    await client.request('create', `${events}?fieldManager=${FIELD_MANAGER}`, {
      signal,
      body: {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name, namespace },
        eventTime: microTime(now),
        reportingController: FIELD_MANAGER,
        reportingInstance: instance.slice(0, 128),
        ...what,
        regarding,
      },
    });
  }

  async function drain(): Promise<void> {
    running++;
    for (let next = queue.take(); next !== undefined && !signal.aborted; next = queue.take()) {
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

  /** Whether one more Event about an object is allowed; if so, it is counted. */
  function countObject({ kind, namespace = '', name, uid }: Regarding): boolean {
    const key = `${kind} ${namespace}/${name} ${uid}`;
    const now = clock.monotonic();
    for (const [oldest, { since }] of objects) {
      if (objects.size < MAX_OBJECTS && now - since < OBJECT_MS) break;
      objects.delete(oldest);
    }
    const record = objects.get(key) ?? { since: now, count: 0 };
    if (record.count >= MAX_OF_OBJECT) return false;
    record.count += 1;
    objects.set(key, record);
    return true;
  }

  function drop(): false {
    options.onDrop?.();
    dropped += 1;
    if (dropped > 1) return false;
    const forget = onAbort(signal, () => cancel());
    const cancel = clock.after(DROPPED_MS, () => {
      forget();
      options.onDropped?.(dropped);
      dropped = 0;
    });
    return false;
  }

  return {
    /**
     * Accepts an occurrence and writes it soon; false if it is dropped. It is dropped if another replica may lead, after the end, if too
     * many Events wait (in all, or in its namespace), or if there were too many about its object. Never throws and never waits.
     */
    emit(occurrence: Occurrence): boolean {
      if (signal.aborted || !mayWrite()) return false;
      // Objects without a namespace belong to no tenant and share a group of their own.
      const group = occurrence.regarding.namespace ?? '';
      const most = queue.size < MAX_QUEUED ? MAX_QUEUED_OF_NAMESPACE : ALWAYS_OF_NAMESPACE;
      if (queue.sizeOf(group) >= most) return drop();
      if (!countObject(occurrence.regarding)) return drop();
      // It may wait for a while, and strangers' texts make it long.
      queue.add(group, { ...occurrence, note: printable(occurrence.note, NOTE_BYTES) });
      if (running < IN_FLIGHT) void drain();
      return true;
    },
    /** Resolves when all accepted Events are written, or the signal aborts. */
    async flush(deadline: AbortSignal): Promise<void> {
      if (running === 0) return;
      await Promise.race([new Promise<void>((resolve) => drained.push(resolve)), until(deadline)]);
    },
  };
}
