import { compareConfig } from '../config/reload.ts';
import type { Config } from '../config/schema.ts';
import { ConfigurationError } from '../config/shown-problems.ts';
import { messageOf } from '../kit/errors.ts';
import { watchFiles } from '../kit/watch-files.ts';
import type { EventRecorder, Regarding } from '../kube/events.ts';
import type { Logger } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Context } from './surroundings.ts';

/** How a file that is followed is reported. */
export type Reporting = {
  readonly log: Logger;
  readonly events: Pick<EventRecorder, 'emit'>;
  /** The object that the Event of a refused file is about. */
  readonly regarding: Regarding;
  readonly signal: AbortSignal;
};

type ReloadingOptions = Reporting & {
  /** Applies the changed keys. If it throws, it has changed nothing. */
  readonly apply: (config: Config, changed: readonly string[]) => Promise<void>;
  readonly metrics: Pick<Metrics, 'configReloaded'>;
};

/**
 * Applies the configuration file whenever it changes, until the signal aborts. A file that is invalid, or that cannot be applied,
 * is refused as a whole, and the last good one stays in force. Without a file there is nothing to do.
 */
export async function reloadOnChange(
  { config, file, clock }: Context,
  { apply, log, metrics, events, regarding, signal }: ReloadingOptions,
): Promise<void> {
  if (file === undefined) return;
  const { name, load } = file;
  let inForce = config;

  async function reload(isChanged: boolean): Promise<void> {
    try {
      const { config: next, applies, needsRestart } = compareConfig(inForce, load());
      if (applies.length > 0) await apply(next, applies);
      inForce = next;
      metrics.configReloaded(true);
      if (isChanged || applies.length > 0) log.info({ file: name, keys: applies }, 'configuration reloaded');
      if (needsRestart.length > 0) {
        log.warn({ file: name, keys: needsRestart }, 'changed, but needs a restart: the previous values stay in use');
      }
    } catch (error) {
      if (signal.aborted) return;
      reject(error instanceof ConfigurationError ? error.problems : [messageOf(error)]);
    }
  }

  function reject(problems: readonly string[]): void {
    metrics.configReloaded(false);
    log.error({ problems }, 'configuration refused; the last valid one stays in use');
    const note = `refused, so the last valid configuration stays in use: ${problems.join('; ')}`;
    events.emit({ regarding, type: 'Warning', reason: 'ConfigurationRejected', action: 'Reloading', note });
  }

  await watchFiles(() => [name], reload, { clock, signal });
}
