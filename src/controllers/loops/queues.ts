import type { Clock } from '../../kit/clock.ts';
import { createTurns, inTurns } from '../../kit/fairness/event-loop.ts';
import { type Controller, createController, type Reconciler } from '../../kube/control-loop.ts';
import type { Telemetry } from '../telemetry.ts';

/** The queues of a term with their workers. All share their turns of the event loop. */
export type Queues = ReturnType<typeof createQueues>;

/** Prepares the queues of a term. `add` creates each. */
export function createQueues({
  workers,
  clock,
  telemetry,
}: {
  readonly workers: number;
  readonly clock: Clock;
  readonly telemetry: Partial<Telemetry>;
}) {
  const turns = createTurns(clock);
  let spreading = 0;
  return {
    /** `isUrgent`: whether a key comes before the others. */
    add: (name: string, reconcile: Reconciler, isUrgent: (key: string) => boolean, most = workers): Controller =>
      createController({
        name,
        workers: most,
        reconcile,
        clock,
        turns,
        priorityOf: (key) => (isUrgent(key) ? 'urgent' : 'backlog'),
        onOutcome: (key, seconds, result) => telemetry.outcome?.(name, key, seconds, result),
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
