import { LeaseLostError } from '../../kube/errors.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { LoopsOptions } from '../controllers.ts';

type Log = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** Creates a function that logs and counts the outcome of each reconciliation. */
export function outcomeLog(
  log: { readonly debug: Log; readonly info: Log; readonly warn: Log },
  metrics: Pick<Metrics, 'reconciled'>,
): LoopsOptions['onOutcome'] {
  return (controller, key, outcome, seconds, error) => {
    metrics.reconciled(controller, outcome, seconds);
    // Not an error: the term is over, and the next one decides everything again.
    if (error instanceof LeaseLostError) log.debug({ controller, key, err: error }, 'not written: the lease is lost');
    else if (outcome === 'error') log.warn({ controller, key, err: error }, 'not reconciled; will be tried again');
    else if (outcome === 'unchanged') log.debug({ controller, key, outcome }, 'reconciled');
    else if (outcome === 'written' || outcome === 'held') log.info({ controller, key, outcome }, 'reconciled');
    else log.debug({ controller, key, outcome }, 'reconciled');
  };
}
