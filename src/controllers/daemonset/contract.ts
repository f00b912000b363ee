import type { Store } from '../../kube/watch/store.ts';
import type { Node } from '../../placement/nodes/node.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import type { PlacingOptions } from '../common-options.ts';

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

/** A DaemonSet that nodes stay untainted for: why, and what to do about it. */
export type Holder = { readonly key: string; readonly uid: string; readonly why: string };
