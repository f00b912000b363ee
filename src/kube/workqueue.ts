import { backoff, type Clock } from '../kit/clock.ts';
import { createFairKeys, type FairKeys } from '../kit/fairness/fair-keys.ts';

/** `urgent`: objects that wait to be scheduled. `backlog`: everything else; its turn comes when nothing is urgent. */
export type Priority = 'urgent' | 'backlog';

/** Keys that need work. A key is in the queue at most once, and only one worker has it at a time. */
export type Workqueue = {
  /** Adds a key. If a worker has it now, it is taken again afterwards. */
  add(key: string, priority: Priority): void;
  /** Adds a key after this many milliseconds; if it was added with several times, the earliest one counts. */
  addAfter(key: string, priority: Priority, ms: number): void;
  /** Adds a key that failed: later with each failure, and not before `leastMs` milliseconds have passed. */
  retry(key: string, priority: Priority, leastMs?: number): void;
  /** Takes the next key; undefined once the queue is closed. Give the key back with `done`. */
  take(): Promise<string | undefined>;
  /** Gives a key back; `succeeded` resets its count of failures. */
  done(key: string, succeeded: boolean): void;
  /** Drops everything about a key: its timers, its failures and its place in the queue. */
  forget(key: string): void;
  /** The number of keys that could be taken now. */
  depth(): number;
  /** Whether nothing is queued or being worked on; keys that are due later do not count. */
  idle(): boolean;
  /** Ends all timers; no key can be taken any more. */
  close(): void;
};

const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 60_000;

/** Creates a queue with two priorities. Within one, namespaces take turns, each first come, first served. */
export function createWorkqueue(clock: Clock): Workqueue {
  const queues: Record<Priority, FairKeys> = { urgent: createFairKeys(), backlog: createFairKeys() };
  const working = new Set<string>();
  const again = new Map<string, Priority>();
  const failures = new Map<string, number>();
  const timers = new Map<string, { at: number; cancel: () => void }>();
  const waiting: (() => void)[] = [];
  let closed = false;

  function add(key: string, priority: Priority): void {
    if (working.has(key)) {
      if (again.get(key) !== 'urgent') again.set(key, priority);
      return;
    }
    if (queues.urgent.has(key)) return;
    if (priority === 'urgent') queues.backlog.delete(key);
    queues[priority].add(key);
    waiting.shift()?.();
  }

  function addAfter(key: string, priority: Priority, ms: number): void {
    if (closed) return;
    const at = clock.monotonic() + ms;
    const planned = timers.get(key);
    if (planned !== undefined && planned.at <= at) return;
    planned?.cancel();
    const cancel = clock.after(ms, () => {
      timers.delete(key);
      add(key, priority);
    });
    timers.set(key, { at, cancel });
  }

  async function take(): Promise<string | undefined> {
    while (!closed) {
      const key = queues.urgent.take() ?? queues.backlog.take();
      if (key !== undefined) {
        working.add(key);
        return key;
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    return undefined;
  }

  return {
    add,
    addAfter,
    retry(key, priority, leastMs = 0) {
      const attempt = failures.get(key) ?? 0;
      failures.set(key, attempt + 1);
      addAfter(key, priority, Math.max(leastMs, backoff(attempt, RETRY_BASE_MS, RETRY_CAP_MS, clock.random)));
    },
    take,
    done(key, succeeded) {
      working.delete(key);
      if (succeeded) failures.delete(key);
      const priority = again.get(key);
      again.delete(key);
      if (priority !== undefined) add(key, priority);
    },
    forget(key) {
      timers.get(key)?.cancel();
      timers.delete(key);
      failures.delete(key);
      queues.urgent.delete(key);
      queues.backlog.delete(key);
    },
    depth: () => queues.urgent.size + queues.backlog.size,
    idle: () => queues.urgent.size + queues.backlog.size + working.size === 0,
    close() {
      closed = true;
      for (const wake of waiting.splice(0)) wake();
      for (const { cancel } of timers.values()) cancel();
      timers.clear();
    },
  };
}
