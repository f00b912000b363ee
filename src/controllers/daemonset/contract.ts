import type { Store } from '../../kube/watch/store.ts';
import type { Node } from '../../placement/nodes/node.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import type { Settings } from '../../placement/settings.ts';
import type { Subject } from '../../placement/subject.ts';
import type { PlacingOptions } from '../common-options.ts';
import type { Memory } from '../memory.ts';
import type { ObjectRecord } from '../object-record.ts';
import type { Notices } from '../refusals.ts';
import type { Ownership } from './give-back.ts';
import type { RolloutTurn } from './rollout.ts';
import type { Unserved } from './unserved.ts';

/** What the DaemonSet controller works with. */
export type DaemonSetControllerOptions = PlacingOptions & {
  readonly daemonSets: Store<DaemonSet>;
  /** Returns the taints that nodes have, as `key:effect`. */
  readonly liveTaints: () => ReadonlySet<string>;
  /** Returns the pull secrets that the API server adds to pods of this service account. */
  readonly serviceAccountSecrets: (namespace: string, name: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** Reads a DaemonSet from the API server, where the watch may be behind; undefined if it is gone. */
  readonly fetchDaemonSet: (known: DaemonSet, signal: AbortSignal) => Promise<DaemonSet | undefined>;
  readonly nodes: () => Iterable<Node>;
  /** Called when a DaemonSet that lacked tolerations has them, and when rollouts are stopped or go on: nodes may wait for that. */
  readonly onServed: () => void;
  /** False for `plan`: lists of tolerations that archaware owns are not given back. Default: true. */
  readonly givesBack?: boolean;
};

/** What the steps of a reconciliation share: the options, and what the controller knows. */
export type TemplateParts = DaemonSetControllerOptions &
  Notices & {
    readonly memory: Memory;
    readonly turn: RolloutTurn;
    readonly unserved: Unserved;
    readonly ownership: Ownership;
  };

/** The DaemonSet of one reconciliation, with its namespace, settings and subject. */
export type TemplateCase = {
  readonly key: string;
  readonly daemonSet: DaemonSet;
  readonly record: ObjectRecord;
  readonly subject: Subject;
  readonly settings: Settings;
  readonly signal: AbortSignal;
};
