import { LeaseLostError } from '../../kube/errors.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { LoopsOptions } from '../controllers.ts';

type Log = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/**
 * Creates a function that logs and counts the outcome of each reconciliation. At level info it says what was written (`wrote`), and
 * why an object is held (`because`).
 */
export function outcomeLog(
  log: { readonly debug: Log; readonly info: Log; readonly warn: Log },
  metrics: Pick<Metrics, 'reconciled'>,
): LoopsOptions['onOutcome'] {
  return (controller, key, seconds, result) => {
    metrics.reconciled(controller, result.outcome, seconds);
    if (result.outcome === 'error') {
      const { error: err } = result;
      // A lost Lease is not an error: the term is over, and the next one decides everything again.
      if (err instanceof LeaseLostError) log.debug({ controller, key, err }, 'not written: the lease is lost');
      else log.warn({ controller, key, err }, 'not reconciled; will be tried again');
      return;
    }
    const { outcome, detail } = result;
    if (outcome === 'written') log.info({ controller, key, outcome, wrote: detail }, 'reconciled');
    else if (outcome === 'held') log.info({ controller, key, outcome, because: detail }, 'reconciled');
    else log.debug({ controller, key, outcome }, 'reconciled');
  };
}
