import { backoff, type Clock } from '../kit/clock.ts';
import { createFairKeys, type FairKeys } from '../kit/fairness/fair-keys.ts';

/** `urgent`: what waits to be scheduled. `backlog`: everything else, when nothing is urgent. */
export type Priority = 'urgent' | 'backlog';

/** Keys that want work: each at most once in it, never two workers on one. */
export type Workqueue = {
  /** Adds a key; one that is being worked on is taken again afterwards. */
  add(key: string, priority: Priority): void;
  /** Adds a key later; the earliest time that was asked for holds. Milliseconds. */
  addAfter(key: string, priority: Priority, ms: number): void;
  /** Adds a key that failed, later each time, and not before `leastMs` are over. */
  retry(key: string, priority: Priority, leastMs?: number): void;
  /** The next key, or undefined once the queue is closed. Must be given back with `done`. */
  take(): Promise<string | undefined>;
  /** The worker has finished; `succeeded` forgets the failures of the key. */
  done(key: string, succeeded: boolean): void;
  /** Drops what is known of a key: times, failures, a place in the queue. */
  forget(key: string): void;
  /** Keys that could be taken now. */
  depth(): number;
  /** Whether nothing is queued or worked on; times to come do not count. */
  idle(): boolean;
  /** Ends all timers, and gives no key any more. */
  close(): void;
};

const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 60_000;

/** Creates a queue with two priorities; within one, namespaces take turns, and in each it is first come, first served. */
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
