import type { Clock } from '../kit/clock.ts';
import type { EventRecorder, Regarding } from '../kube/events.ts';
import type { EventReason } from '../names.ts';
import type { Logger } from '../observability/log.ts';
import type { OnProblem } from '../webhook/certificates/source.ts';

export type ProblemLogOptions = {
  /** What has the problem, in words: `certificate`. */
  readonly what: 'certificate' | 'configuration' | 'path';
  /** The reason of the Event; undefined: no Event. */
  readonly reason: EventReason | undefined;
  readonly log: Pick<Logger, 'info' | 'error'>;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly regarding: Regarding;
  /** Whether this replica leads. */
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

/** The interval of checks whether this replica leads. */
const LEAD_MS = 1_000;

/**
 * Creates a function that logs a problem of the webhook and its end. With an Event reason, it also writes an Event as soon as this
 * replica leads, which may be long after the problem was found: followers write no Events.
 */
export function createProblemLog(options: ProblemLogOptions): OnProblem {
  const { what, reason, log, events, regarding, mayWrite, clock, signal } = options;
  let current: string | undefined;
  let isWaiting = false;

  /** Waits until this replica leads. However often the problem changes meanwhile, there is one wait. */
  async function emitWhenLeading(): Promise<void> {
    if (isWaiting || reason === undefined) return;
    isWaiting = true;
    while (!mayWrite() && !signal.aborted && current !== undefined) await clock.delay(LEAD_MS, signal);
    isWaiting = false;
    if (signal.aborted || current === undefined) return;
    events.emit({ regarding, type: 'Warning', reason, action: 'Serving', note: current });
  }

  return (problem) => {
    current = problem;
    if (problem === undefined) {
      log.info(`the problem with the webhook's ${what} is solved`);
      return;
    }
    log.error({ problem }, `problem with the webhook's ${what}`);
    void emitWhenLeading();
  };
}
