import { concernsRegistries } from '../../config/reload.ts';
import type { Config } from '../../config/schema.ts';
import { toSettings } from '../../config/settings.ts';
import type { Logger } from '../../observability/log.ts';
import type { Settings } from '../../placement/settings.ts';
import { absentArchitectureLog } from '../absent-architectures.ts';
import type { Registries } from '../registries/registries.ts';
import type { Watches } from '../watches.ts';

/** The configuration in force. */
export type InForce = {
  readonly settings: () => Settings;
  /** Applies changed keys. If it throws, it has changed nothing. */
  apply(next: Config, changed: readonly string[]): Promise<void>;
  /** Logs the architectures that the configuration names and no node has. Logs nothing before all nodes are listed. */
  logAbsent(): void;
};

/** Creates it with the configuration of the start. */
export function createInForce(
  config: Config,
  parts: { readonly registries: Registries; readonly watches: Watches; readonly log: Logger; onChange(): void },
): InForce {
  const { registries, watches, log, onChange } = parts;
  let current = config;
  let settings = toSettings(config);
  const logAbsentOf = absentArchitectureLog(log);
  const logAbsent = () => {
    if (watches.notSynced().length === 0) logAbsentOf(current, watches.nodes.store.values());
  };
  return {
    settings: () => settings,
    logAbsent,
    async apply(next, changed) {
      const decided = toSettings(next);
      if (changed.some(concernsRegistries)) await registries.replace(next);
      settings = decided;
      log.level = next.log.level;
      current = next;
      logAbsent();
      onChange();
    },
  };
}
