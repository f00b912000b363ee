import type { Clock } from '../kit/clock.ts';
import { ApiError, LeaseLostError } from './errors.ts';
import { createWorkqueue, type Priority, type Workqueue } from './workqueue.ts';

/** How a reconciliation ended, as `archaware_reconcile_total` counts it. */
export type Outcome = 'written' | 'unchanged' | 'waiting' | 'held' | 'conflict';

/** `againInMs`: reconcile the key again after this time, though nothing may have changed by then. */
export type Result = { readonly outcome: Outcome; readonly againInMs?: number | undefined };

/**
 * Brings one object to where it should be. Throwing means: again, with backoff. Must be idempotent: a second run on an
 * unchanged object sends nothing that writes.
 */
export type Reconciler = (key: string, signal: AbortSignal) => Promise<Result>;

export type ControllerOptions = {
  readonly name: string;
  readonly workers: number;
  readonly reconcile: Reconciler;
  readonly priorityOf: (key: string) => Priority;
  readonly clock: Clock;
  /** Called once for each run, with seconds it took. */
  readonly onOutcome: (key: string, outcome: Outcome | 'error', seconds: number, error?: unknown) => void;
};

/** Workers over a queue. */
export type Controller = {
  readonly name: string;
  enqueue(key: string): void;
  /** Milliseconds; 0: at once. */
  enqueueAfter(key: string, ms: number): void;
  forget(key: string): void;
  depth(): number;
  idle(): boolean;
  /**
   * Works until `signal` aborts; then takes nothing more, and resolves when what was under way has ended. `kill` is
   * handed to the reconciler and ends that too.
   */
  run(signal: AbortSignal, kill: AbortSignal): Promise<void>;
};

/** What the Lease kept from being written is tried again after this time, in a term that goes on after all. */
const LEASE_LOST_MS = 5_000;

/** Creates a controller; keys may be added before it runs. */
export function createController(options: ControllerOptions): Controller {
  const { name, workers, reconcile, priorityOf, clock, onOutcome } = options;
  const queue: Workqueue = createWorkqueue(clock);

  async function work(kill: AbortSignal): Promise<void> {
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      const started = clock.monotonic();
      let succeeded = false;
      try {
        const { outcome, againInMs } = await reconcile(key, kill);
        succeeded = outcome !== 'conflict';
        onOutcome(key, outcome, (clock.monotonic() - started) / 1000);
        if (outcome === 'conflict' && againInMs === undefined) queue.retry(key, priorityOf(key));
        else if (againInMs !== undefined) queue.addAfter(key, priorityOf(key), againInMs);
      } catch (error) {
        if (!kill.aborted) onOutcome(key, 'error', (clock.monotonic() - started) / 1000, error);
        if (error instanceof LeaseLostError) {
          // The term ends with the queue, or the Lease is renewed at the last moment: nothing is gained by asking before that.
          queue.addAfter(key, priorityOf(key), LEASE_LOST_MS);
          continue;
        }
        // What the API server asks for when it has too much to do (429, 503).
        queue.retry(key, priorityOf(key), error instanceof ApiError ? error.retryAfterMs : undefined);
      } finally {
        queue.done(key, succeeded);
      }
    }
  }

  return {
    name,
    enqueue: (key) => queue.add(key, priorityOf(key)),
    enqueueAfter(key, ms) {
      if (ms <= 0) queue.add(key, priorityOf(key));
      else queue.addAfter(key, priorityOf(key), ms);
    },
    forget: (key) => queue.forget(key),
    depth: () => queue.depth(),
    idle: () => queue.idle(),
    async run(signal, kill) {
      if (signal.aborted) queue.close();
      else signal.addEventListener('abort', () => queue.close(), { once: true });
      await Promise.all(Array.from({ length: workers }, () => work(kill)));
    },
  };
}
