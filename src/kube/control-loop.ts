import { onAbort } from '../kit/abort.ts';
import type { Clock } from '../kit/clock.ts';
import { createTurns, inTurns, type Turns } from '../kit/fairness/event-loop.ts';
import { ApiError, concernsServer, LeaseLostError } from './errors.ts';
import { add, addAfter, close, createWorkqueue, depth, done, forget, isIdle, retry, take } from './workqueue.ts';

/** How a reconciliation ended, as `archaware_reconcile_total` counts it. */
export type Outcome = 'written' | 'unchanged' | 'waiting' | 'held' | 'conflict';

/**
 * `againInMs`: reconcile the key again after this time, even if nothing has changed by then. `detail`: what was written, or why the
 * object is held, in a few words for the log.
 */
export type Result = {
  readonly outcome: Outcome;
  readonly againInMs?: number | undefined;
  readonly detail?: string | undefined;
};

/**
 * Brings one object to the wanted state. If it throws, the key is tried again with backoff. Must be idempotent: a
 * second run on an unchanged object writes nothing.
 */
export type Reconciler = (key: string, signal: AbortSignal) => Promise<Result>;

export type ControllerOptions = {
  readonly name: string;
  readonly workers: number;
  readonly reconcile: Reconciler;
  /** Whether a key comes before the others. */
  readonly isUrgent: (key: string) => boolean;
  readonly clock: Clock;
  /** The turns of the event loop that its work shares with other work; default: its own. */
  readonly turns?: Turns;
  /** Called once after each run, with its length in seconds, and with the result or the error. */
  readonly onOutcome: (key: string, seconds: number, result: Result | Failure) => void;
};

/** A reconciliation that threw. */
export type Failure = { readonly outcome: 'error'; readonly error: unknown };

/** Workers over a queue. */
export type Controller = ReturnType<typeof createController>;

/** A write that the Lease prevented is tried again after this time, in case the term goes on after all. */
const LEASE_LOST_MS = 5_000;

/** Creates a controller; keys may be added before it runs. */
export function createController(options: ControllerOptions) {
  const { name, workers, reconcile, isUrgent, clock, onOutcome } = options;
  const queue = createWorkqueue(clock);
  const turns = options.turns ?? createTurns(clock);
  const priorityOf = (key: string) => (isUrgent(key) ? 'urgent' : 'backlog');

  async function work(kill: AbortSignal): Promise<void> {
    for (let key = await take(queue); key !== undefined; key = await take(queue)) {
      // The workers take keys from each other in microtasks, so without this nothing else would happen until the queue is empty.
      while (turns.isOver()) await turns.next();
      const started = clock.monotonic();
      let [succeeded, written] = [false, false];
      try {
        const result = await reconcile(key, kill);
        const { outcome, againInMs } = result;
        succeeded = outcome !== 'conflict';
        written = outcome === 'written';
        onOutcome(key, (clock.monotonic() - started) / 1000, result);
        if (outcome === 'conflict' && againInMs === undefined) retry(queue, key, priorityOf(key));
        else if (againInMs !== undefined) addAfter(queue, key, priorityOf(key), againInMs);
      } catch (error) {
        if (!kill.aborted) onOutcome(key, (clock.monotonic() - started) / 1000, { outcome: 'error', error });
        if (error instanceof LeaseLostError) {
          // Either the term ends, and the queue with it, or the Lease is renewed at the last moment. An earlier attempt would gain nothing.
          addAfter(queue, key, priorityOf(key), LEASE_LOST_MS);
          continue;
        }
        // The time that the API server asks for when it is overloaded (429, 503).
        const leastMs = error instanceof ApiError ? error.retryAfterMs : undefined;
        retry(queue, key, priorityOf(key), leastMs, concernsServer(error));
      } finally {
        done(queue, key, succeeded, written);
      }
    }
  }

  return {
    name,
    enqueue: (key: string): void => add(queue, key, priorityOf(key)),
    /** Milliseconds; 0 means at once. */
    enqueueAfter(key: string, ms: number): void {
      if (ms <= 0) add(queue, key, priorityOf(key));
      else addAfter(queue, key, priorityOf(key), ms);
    },
    forget: (key: string): void => forget(queue, key),
    depth: (): number => depth(queue),
    idle: (): boolean => isIdle(queue),
    /**
     * Works until `signal` aborts, then takes no more keys, and resolves when the work under way has ended. `kill` is
     * passed to the reconciler and aborts that work too.
     */
    async run(signal: AbortSignal, kill: AbortSignal): Promise<void> {
      onAbort(signal, () => close(queue));
      await Promise.all(Array.from({ length: workers }, () => work(kill)));
    },
  };
}

/** The queues of a term with their workers. All share their turns of the event loop. */
export type Queues = ReturnType<typeof createQueues>;

/** Prepares the queues of a term. `add` creates each. */
export function createQueues(options: {
  readonly workers: number;
  readonly clock: Clock;
  readonly onOutcome: (name: string, ...ended: Parameters<ControllerOptions['onOutcome']>) => void;
}) {
  const { workers, clock, onOutcome } = options;
  const turns = createTurns(clock);
  let spreading = 0;
  return {
    add: (name: string, reconcile: Reconciler, isUrgent: ControllerOptions['isUrgent'], most = workers): Controller =>
      createController({
        ...{ name, workers: most, reconcile, isUrgent, clock, turns },
        onOutcome: (...ended) => onOutcome(name, ...ended),
      }),
    /** Does `work` for every item: in this turn of the event loop as long as that is short, then in the next ones. */
    forEach<T>(items: Iterable<T>, work: (item: T) => void): void {
      const rest = inTurns(turns, items, work);
      if (rest === undefined) return;
      spreading += 1;
      void rest.finally(() => {
        spreading -= 1;
      });
    },
    /** Whether no work for many items goes on in later turns. */
    idle: (): boolean => spreading === 0,
  };
}
