import type { Selector } from '../kit/selector.ts';

/** What the operator decided, as the pure functions read it. Built from the configuration by `commands`. */
export type Settings = {
  /** The policy that these are of; absent: the global keys alone. */
  readonly policy?: string;
  /** The first that matches wins (`settingsFor` in policy.ts); those of a policy have none. */
  readonly policies: readonly Policy[];
  /** How pods are placed: by tolerations, by node affinity, or by both. */
  readonly mode: 'taints' | 'affinity' | 'both';
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
  /** Weights, 1 to 100. */
  readonly preferred: Readonly<Record<string, number>>;
  readonly noCommonArchitecture: 'hold' | 'release' | 'reject';
  readonly excludeNamespaces: readonly string[];
  readonly namespaceSelector: Selector;
  readonly systemNamespaces: readonly string[];
  /** Label keys of pods that become required labels of nodes. */
  readonly matchNodeLabels: readonly string[];
  readonly daemonSets: 'patch' | 'ignore';
  /** What becomes of pods that are bound to a node whose architecture their images lack. */
  readonly onWrongNode: 'warn' | 'evict';
  readonly unresolvable: 'open' | 'wait' | 'fallback';
  /** Milliseconds from this process's first failure of an image until `unresolvable` applies. */
  readonly fallbackAfterMs: number;
  readonly overrides: readonly { readonly pattern: string; readonly architectures: readonly string[] }[];
};

/** Which pods have settings of their own: all that is named here must match. */
export type Policy = {
  readonly name: string;
  /** Globs; undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  readonly namespaceSelector: Selector;
  /** By the labels of a pod, or of a DaemonSet's template. */
  readonly podSelector: Selector;
  /** The global ones, but for what the policy says. */
  readonly settings: Settings;
};
