import { backoff, type Clock } from '../kit/clock.ts';
import { createFairQueue, type FairQueue, namespaceOf } from '../kit/fairness/fair-queue.ts';

/** `urgent`: objects that wait to be scheduled. `backlog`: everything else; its turn comes when nothing is urgent. */
export type Priority = 'urgent' | 'backlog';

/** Keys that need work. A key is in the queue at most once, and only one worker has it at a time. */
export type Workqueue = ReturnType<typeof createWorkqueue>;

const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 60_000;
/** The longest wait of the key that finds out whether the server works again. */
const PROBE_MS = 3_000;

/** Creates a queue with two priorities. Within one, namespaces take turns, each first come, first served. */
export function createWorkqueue(clock: Clock) {
  const queues: Record<Priority, FairQueue<string>> = { urgent: createFairQueue(), backlog: createFairQueue() };
  const working = new Set<string>();
  const again = new Map<string, Priority>();
  const failures = new Map<string, number>();
  const timers = new Map<string, { at: number; cancel: () => void }>();
  /** The keys that failed with the server, and the first of them. */
  const withServer = new Map<string, Priority>();
  let probe: string | undefined;
  /** Keys that failed again after the server worked for another. They fail by themselves, and wait as others do. */
  const stubborn = new Set<string>();
  const waiting: (() => void)[] = [];
  let closed = false;

  function add(key: string, priority: Priority): void {
    if (working.has(key)) {
      if (again.get(key) !== 'urgent') again.set(key, priority);
      return;
    }
    const namespace = namespaceOf(key);
    if (queues.urgent.has(namespace, key)) return;
    if (priority === 'urgent') queues.backlog.delete(namespace, key);
    queues[priority].add(namespace, key);
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

  /** The key no longer waits for the server. */
  function release(key: string): void {
    withServer.delete(key);
    if (probe === key) probe = undefined;
  }

  function serverWorks(): void {
    for (const [key, priority] of withServer) {
      stubborn.add(key);
      timers.get(key)?.cancel();
      timers.delete(key);
      add(key, priority);
    }
    withServer.clear();
    probe = undefined;
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
    /** Adds a key. If a worker has it now, it is taken again afterwards. */
    add,
    /** Adds a key after this many milliseconds; if it was added with several times, the earliest one counts. */
    addAfter,
    /**
     * Adds a key that failed: later with each failure, and not before `leastMs` milliseconds have passed. `withServer`: the server failed,
     * so it may soon be well again. Of all such keys, one is tried again every few seconds.
     */
    retry(key: string, priority: Priority, leastMs = 0, failedWithServer = false): void {
      const attempt = failures.get(key) ?? 0;
      failures.set(key, attempt + 1);
      if (!failedWithServer || stubborn.has(key)) release(key);
      else {
        withServer.set(key, priority);
        probe ??= key;
      }
      const plain = backoff(attempt, RETRY_BASE_MS, RETRY_CAP_MS, clock.random);
      addAfter(key, priority, Math.max(leastMs, probe === key ? Math.min(plain, PROBE_MS) : plain));
    },
    /** Takes the next key; undefined once the queue is closed. Give the key back with `done`. */
    take,
    /**
     * Gives a key back; `succeeded` resets its count of failures. `written`: the server did what the key needed, so all keys that failed
     * with it are added now.
     */
    done(key: string, succeeded: boolean, written = false): void {
      working.delete(key);
      if (succeeded) {
        failures.delete(key);
        stubborn.delete(key);
        release(key);
      }
      if (written) serverWorks();
      const priority = again.get(key);
      again.delete(key);
      if (priority !== undefined) add(key, priority);
    },
    /** Drops everything about a key: its timers, its failures and its place in the queue. */
    forget(key: string): void {
      timers.get(key)?.cancel();
      timers.delete(key);
      failures.delete(key);
      stubborn.delete(key);
      release(key);
      for (const queue of Object.values(queues)) queue.delete(namespaceOf(key), key);
    },
    /** The number of keys that could be taken now. */
    depth: (): number => queues.urgent.size + queues.backlog.size,
    /** Whether nothing is queued or being worked on; keys that are due later do not count. */
    idle: (): boolean => queues.urgent.size + queues.backlog.size + working.size === 0,
    /** Ends all timers; no key can be taken any more. */
    close(): void {
      closed = true;
      for (const wake of waiting.splice(0)) wake();
      for (const { cancel } of timers.values()) cancel();
      timers.clear();
    },
  };
}
