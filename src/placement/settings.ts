import type { Selector } from '../kit/label-syntax.ts';

/** The part of the configuration that the rules read. `config/settings.ts` builds it. */
export type Settings = {
  /** The name of the policy that these settings belong to; absent for the global ones. */
  readonly policy?: string;
  /** The first policy that matches wins (`settingsFor` in eligibility.ts). Empty in the settings of a policy. */
  readonly policies: readonly Policy[];
  /** How pods are placed: by tolerations, by node affinity, or by both. `observe`: decisions are reported, and nothing is written. */
  readonly mode: 'taints' | 'affinity' | 'both' | 'observe';
  readonly taints: {
    readonly manage: boolean;
    readonly key: string;
    readonly effect: string;
    readonly nodeSelector: Selector;
  };
  /** Only these architectures are ever used; empty: all. */
  readonly schedulable: readonly string[];
  /** Which other architectures the nodes of an architecture can run: `amd64` runs `386`. */
  readonly compatible: Readonly<Record<string, readonly string[]>>;
  readonly fallback: readonly string[];
  /** Weights, 1 to 100. */
  readonly preferred: Readonly<Record<string, number>>;
  readonly noCommonArchitecture: 'hold' | 'release' | 'reject';
  /** Whether a part that the API server refuses at the creation of pods is left out of the next pods of their owner. */
  readonly refused: 'withdraw' | 'keep';
  readonly excludeNamespaces: readonly string[];
  readonly namespaceSelector: Selector;
  readonly systemNamespaces: readonly string[];
  /** Keys of pod labels that nodes must have with the same value. */
  readonly matchNodeLabels: readonly string[];
  readonly daemonSets: 'patch' | 'ignore';
  /** What to do with a pod that is bound to a node that its images do not support. */
  readonly onWrongNode: 'warn' | 'evict';
  readonly unresolvable: 'open' | 'wait' | 'fallback';
  /** Milliseconds from the first failed lookup of an image in this process until `unresolvable` applies. */
  readonly fallbackAfterMs: number;
  readonly overrides: readonly { readonly pattern: string; readonly architectures: readonly string[] }[];
};

/** Settings for some pods. Every selector that is set here must match. */
export type Policy = {
  readonly name: string;
  /** Globs; undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  readonly namespaceSelector: Selector;
  /** Matches the labels of a pod, or of a DaemonSet's template. */
  readonly podSelector: Selector;
  /** The global settings with the changes of the policy. */
  readonly settings: Settings;
};

/** Returns the settings on which it may depend what images run on. One too many costs a lookup of known images, and no more. */
export function settingsOfImages({ schedulable, compatible, overrides, noCommonArchitecture }: SubjectSettings) {
  return { schedulable, compatible, overrides, noCommonArchitecture };
}

/** The settings that decide about a subject. Others decide only through what `subject.ts` reads with them. */
export type SubjectSettings = Pick<
  Settings,
  | 'mode'
  | 'schedulable'
  | 'compatible'
  | 'overrides'
  | 'noCommonArchitecture'
  | 'unresolvable'
  | 'fallback'
  | 'fallbackAfterMs'
  | 'preferred'
  | 'matchNodeLabels'
> & { readonly taints: Pick<Settings['taints'], 'key' | 'effect'> };

/** Returns the settings that decide about a subject: they are in its key. */
export function decidingSettings(settings: Settings): SubjectSettings {
  const { mode, unresolvable, fallback, fallbackAfterMs, preferred, matchNodeLabels, taints } = settings;
  const { key, effect } = taints;
  const written = { unresolvable, fallback, fallbackAfterMs, preferred, matchNodeLabels, taints: { key, effect } };
  return { mode, ...settingsOfImages(settings), ...written };
}
