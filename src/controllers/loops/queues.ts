import type { Clock } from '../../kit/clock.ts';
import { createTurns, inTurns } from '../../kit/fairness/event-loop.ts';
import { type Controller, createController, type Reconciler } from '../../kube/control-loop.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import type { Telemetry } from '../telemetry.ts';

/** Which keys of a queue come before the others: all, none, or the pods without a node. */
type Urgency = boolean | Pick<Store<Pod>, 'get'>;

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
    add: (name: string, reconcile: Reconciler, urgency: Urgency, most = workers): Controller =>
      createController({
        name,
        workers: most,
        reconcile,
        clock,
        turns,
        priorityOf: (key) => (isUrgent(key, urgency) ? 'urgent' : 'backlog'),
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

function isUrgent(key: string, urgency: Urgency): boolean {
  return typeof urgency === 'boolean' ? urgency : urgency.get(key)?.nodeName === undefined;
}
