import type { KeySource } from '../config/load.ts';
import type { Config } from '../config/schema.ts';

/** The input of every command: the merged configuration, the common flags, and one signal that ends everything. */
export type Context = {
  readonly config: Config;
  readonly sources: ReadonlyMap<string, KeySource>;
  /** The file that `--config` names. `load` reads it again, with the same flags and variables. */
  readonly file: { readonly name: string; load(): Config } | undefined;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly output: 'table' | 'json' | 'yaml';
  readonly signal: AbortSignal;
};

/** The documented exit codes. */
export const EXIT = { done: 0, failed: 1, found: 2, usage: 3 } as const;
