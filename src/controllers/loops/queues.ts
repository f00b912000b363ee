import type { Clock } from '../../kit/clock.ts';
import { createTurns, inTurns } from '../../kit/fairness/turns.ts';
import { type Controller, createController, type Reconciler } from '../../kube/controller.ts';
import type { Telemetry } from '../telemetry.ts';

/** The queues of a term with their workers. */
export type Queues = {
  /** Adds a queue. A key for which `urgent` is true comes before the others. `workers`: default those of the options. */
  add(name: string, reconcile: Reconciler, urgent: (key: string) => boolean, workers?: number): Controller;
  /** Does `work` for every item: in this turn of the event loop as long as that is short, then in the next ones. */
  forEach<T>(items: Iterable<T>, work: (item: T) => void): void;
  /** Whether no work for many items goes on in later turns. */
  idle(): boolean;
};

/** Creates no queue yet. All share their turns of the event loop. */
export function createQueues(options: {
  readonly workers: number;
  readonly clock: Clock;
  readonly telemetry: Partial<Telemetry>;
}): Queues {
  const { workers, clock, telemetry } = options;
  const turns = createTurns(clock);
  let spreading = 0;
  return {
    add: (name, reconcile, urgent, most = workers) =>
      createController({
        name,
        workers: most,
        reconcile,
        clock,
        turns,
        priorityOf: (key) => (urgent(key) ? 'urgent' : 'backlog'),
        onOutcome: (key, seconds, result) => telemetry.outcome?.(name, key, seconds, result),
      }),
    forEach(items, work) {
      const rest = inTurns(turns, items, work);
      if (rest === undefined) return;
      spreading += 1;
      void rest.finally(() => {
        spreading -= 1;
      });
    },
    idle: () => spreading === 0,
  };
}
