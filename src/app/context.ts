import type { KeySource } from '../config/load.ts';
import type { Config } from '../config/schema.ts';

/** What every command is given: the merged configuration, the common flags, and one signal that ends everything. */
export type Context = {
  readonly config: Config;
  readonly sources: ReadonlyMap<string, KeySource>;
  /** Where `--config` names one: the file, to be read again as it was read first, under the same flags and variables. */
  readonly file: { readonly name: string; load(): Config } | undefined;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly output: 'table' | 'json' | 'yaml';
  readonly signal: AbortSignal;
};

/** Exit codes, as documented. */
export const EXIT = { done: 0, failed: 1, found: 2, usage: 3 } as const;
