import type { Selector } from './selector.ts';

/** What the operator decided, as the pure functions read it. Built from the configuration by `commands`. */
export type Settings = {
  readonly taints: {
    readonly manage: boolean;
    readonly key: string;
    readonly effect: string;
    readonly nodeSelector: Selector;
  };
  /** Only these are ever used; empty: all. */
  readonly schedulable: readonly string[];
  /** What else nodes of an architecture run: `amd64` runs `386`. */
  readonly compatible: Readonly<Record<string, readonly string[]>>;
  readonly fallback: readonly string[];
  readonly noCommonArchitecture: 'hold' | 'release';
  readonly excludeNamespaces: readonly string[];
  readonly namespaceSelector: Selector;
  readonly systemNamespaces: readonly string[];
  readonly daemonSets: 'patch' | 'ignore';
  readonly unresolvable: 'open' | 'wait' | 'fallback';
  /** Milliseconds from this process's first failure of an image until `unresolvable` applies. */
  readonly fallbackAfterMs: number;
  readonly overrides: readonly { readonly pattern: string; readonly architectures: readonly string[] }[];
};
