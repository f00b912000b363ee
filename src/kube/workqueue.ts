import { backoff, type Clock } from '../kit/clock.ts';
import { createFairQueue, type FairQueue, namespaceOf } from '../kit/fairness/fair-queue.ts';

/** `urgent`: objects that wait to be scheduled. `backlog`: everything else; its turn comes when nothing is urgent. */
export type Priority = 'urgent' | 'backlog';

/** Keys that need work. A key is in the queue at most once, and only one worker has it at a time. */
export type Workqueue = {
  readonly clock: Clock;
  readonly queues: Readonly<Record<Priority, FairQueue<string>>>;
  readonly working: Set<string>;
  /** The keys that were added while a worker had them. */
  readonly again: Map<string, Priority>;
  readonly failures: Map<string, number>;
  readonly timers: Map<string, { readonly at: number; readonly cancel: () => void }>;
  /** The keys that failed with the server, and the first of them. */
  readonly withServer: Map<string, Priority>;
  probe: string | undefined;
  /** Keys that failed again after the server worked for another. They fail by themselves, and wait as others do. */
  readonly stubborn: Set<string>;
  /** The workers that wait for a key. */
  readonly waiting: (() => void)[];
  closed: boolean;
};

const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 60_000;
/** The longest wait of the key that finds out whether the server works again. */
const PROBE_MS = 3_000;

/** Creates a queue with two priorities. Within one, namespaces take turns, each first come, first served. */
export function createWorkqueue(clock: Clock): Workqueue {
  return {
    clock,
    queues: { urgent: createFairQueue(), backlog: createFairQueue() },
    ...{ working: new Set(), again: new Map(), failures: new Map(), timers: new Map() },
    ...{ withServer: new Map(), probe: undefined, stubborn: new Set(), waiting: [], closed: false },
  };
}

/** Adds a key. If a worker has it now, it is taken again afterwards. */
export function add(queue: Workqueue, key: string, priority: Priority): void {
  const { queues, again } = queue;
  if (queue.working.has(key)) {
    if (again.get(key) !== 'urgent') again.set(key, priority);
    return;
  }
  const namespace = namespaceOf(key);
  if (queues.urgent.has(namespace, key)) return;
  if (priority === 'urgent') queues.backlog.delete(namespace, key);
  queues[priority].add(namespace, key);
  queue.waiting.shift()?.();
}

/** Adds a key after this many milliseconds; if it was added with several times, the earliest one counts. */
export function addAfter(queue: Workqueue, key: string, priority: Priority, ms: number): void {
  const { timers, clock } = queue;
  if (queue.closed) return;
  const at = clock.monotonic() + ms;
  const planned = timers.get(key);
  if (planned !== undefined && planned.at <= at) return;
  planned?.cancel();
  const cancel = clock.after(ms, () => {
    timers.delete(key);
    add(queue, key, priority);
  });
  timers.set(key, { at, cancel });
}

/** Takes the next key; undefined once the queue is closed. Give the key back with {@link done}. */
export async function take(queue: Workqueue): Promise<string | undefined> {
  const { queues, working, waiting } = queue;
  while (!queue.closed) {
    const key = queues.urgent.take() ?? queues.backlog.take();
    if (key !== undefined) {
      working.add(key);
      return key;
    }
    await new Promise<void>((resolve) => waiting.push(resolve));
  }
  return undefined;
}

/**
 * Adds a key that failed: later with each failure, and not before `leastMs` milliseconds have passed. `failedWithServer`: the server
 * failed, so it may soon be well again. Of all such keys, one is tried again every few seconds.
 */
export function retry(queue: Workqueue, key: string, priority: Priority, leastMs = 0, failedWithServer = false): void {
  const { failures } = queue;
  const attempt = failures.get(key) ?? 0;
  failures.set(key, attempt + 1);
  if (!failedWithServer || queue.stubborn.has(key)) release(queue, key);
  else {
    queue.withServer.set(key, priority);
    queue.probe ??= key;
  }
  const plain = backoff(attempt, RETRY_BASE_MS, RETRY_CAP_MS, queue.clock.random);
  addAfter(queue, key, priority, Math.max(leastMs, queue.probe === key ? Math.min(plain, PROBE_MS) : plain));
}

/**
 * Gives a key back; `succeeded` resets its count of failures. `written`: the server did what the key needed, so all keys that failed
 * with it are added now.
 */
export function done(queue: Workqueue, key: string, succeeded: boolean, written = false): void {
  queue.working.delete(key);
  if (succeeded) forgetFailures(queue, key);
  if (written) serverWorks(queue);
  const priority = queue.again.get(key);
  queue.again.delete(key);
  if (priority !== undefined) add(queue, key, priority);
}

function serverWorks(queue: Workqueue): void {
  for (const [key, priority] of queue.withServer) {
    queue.stubborn.add(key);
    cancelTimer(queue, key);
    add(queue, key, priority);
  }
  queue.withServer.clear();
  queue.probe = undefined;
}

/** Drops everything about a key: its timers, its failures and its place in the queue. */
export function forget(queue: Workqueue, key: string): void {
  cancelTimer(queue, key);
  forgetFailures(queue, key);
  for (const each of Object.values(queue.queues)) each.delete(namespaceOf(key), key);
}

function cancelTimer({ timers }: Workqueue, key: string): void {
  timers.get(key)?.cancel();
  timers.delete(key);
}

function forgetFailures(queue: Workqueue, key: string): void {
  queue.failures.delete(key);
  queue.stubborn.delete(key);
  release(queue, key);
}

/** The key no longer waits for the server. */
function release(queue: Workqueue, key: string): void {
  queue.withServer.delete(key);
  if (queue.probe === key) queue.probe = undefined;
}

/** The number of keys that could be taken now. */
export function depth({ queues }: Workqueue): number {
  return queues.urgent.size + queues.backlog.size;
}

/** Whether nothing is queued or being worked on; keys that are due later do not count. */
export function isIdle(queue: Workqueue): boolean {
  return depth(queue) + queue.working.size === 0;
}

/** Ends all timers; no key can be taken any more. */
export function close(queue: Workqueue): void {
  queue.closed = true;
  for (const wake of queue.waiting.splice(0)) wake();
  for (const { cancel } of queue.timers.values()) cancel();
  queue.timers.clear();
}
