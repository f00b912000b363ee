import type { Settings } from '../placement/settings.ts';
import type { Config } from './schema.ts';
import { toSettings } from './settings.ts';

/** The configuration in force, which only a reload replaces. */
export type InForce = {
  config(): Config;
  settings(): Settings;
  /** Reads the settings of another configuration. The function that is returned puts it into force. */
  prepare(next: Config): () => void;
};

/** Creates it with the configuration of the start. */
export function createInForce(start: Config): InForce {
  let config = start;
  let settings = toSettings(start);
  return {
    config: () => config,
    settings: () => settings,
    prepare(next) {
      const read = toSettings(next);
      return () => {
        config = next;
        settings = read;
      };
    },
  };
}
