import type { Reconciler } from '../../kube/control-loop.ts';
import type { Store } from '../../kube/watch/store.ts';
import type { Node } from '../../placement/nodes/node.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import type { PlacingOptions } from '../common-options.ts';
import type { ObjectRecord } from '../object-record.ts';
import type { Due } from '../waiting.ts';

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

/** The DaemonSet controller: gathers the input of a template's decision, decides, writes. */
export type DaemonSetController = {
  readonly reconcile: Reconciler;
  readonly states: ReadonlyMap<string, ObjectRecord>;
  /** Returns the DaemonSets to reconcile again, and when, after the lookup of an image (its canonical name) has ended. */
  lookupEnded(image: string): readonly Due[];
  /** Returns the DaemonSet whose turn to roll has come; undefined while another one rolls, and if none waits. */
  nextToRoll(): string | undefined;
  /**
   * Whether nodes must not be tainted before the DaemonSet has had its turn to roll, and a first pod of it shows that the change is let
   * in. One that had not rolled out before does not count, nor one that waits for a stopped DaemonSet of its own namespace: its author
   * can keep it in that state for ever.
   */
  holdsTaints(key: string): boolean;
  /** Returns the DaemonSets that this node must not be tainted for, with the reason for each. */
  holders(node: Node): readonly Holder[];
  /**
   * Whether a taint would come too early for this node: a DaemonSet of the system has a change of archaware of which nothing shows yet
   * that it is let in. Once a node has the taint, the change cannot be taken back.
   */
  awaitsProof(node: Node): boolean;
  /** Returns the DaemonSets that stop all rollouts, and all taints with them. */
  stopsAll(): readonly string[];
  /** Returns the DaemonSets that did not come back after a write. */
  stopped(): readonly string[];
  /** Counts the DaemonSets whose tolerations another writer keeps removing. */
  contested(): number;
};

/** A DaemonSet that nodes stay untainted for: why, and what to do about it. */
export type Holder = { readonly key: string; readonly uid: string; readonly why: string };
