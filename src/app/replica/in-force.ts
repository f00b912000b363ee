import { concernsRegistries } from '../../config/reload.ts';
import type { Config } from '../../config/schema.ts';
import { toSettings } from '../../config/settings.ts';
import type { Logger } from '../../observability/log.ts';
import type { Settings } from '../../placement/settings.ts';
import { absentArchitectureLog } from '../absent-architectures.ts';
import type { Registries } from '../registries/registries.ts';
import type { Watches } from '../watches.ts';

/** The configuration that holds now. */
export type InForce = {
  readonly settings: () => Settings;
  /** Makes changed keys hold. Throws where they cannot, and has then changed nothing. */
  apply(next: Config, changed: readonly string[]): Promise<void>;
  /** Logs the architectures that the configuration names and no node has; nothing before all nodes are there. */
  logAbsent(): void;
};

/** Begins with the configuration of the start. */
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
