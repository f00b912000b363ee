/**
 * The replacement of an owner's pods, one at a time. A pod is removed only while the owner has as many ready pods as it wants by its
 * spec, so that all runs of `clean` together cost an owner one ready pod at most.
 */
export type Turn = {
  /** The uids of the pods to remove. */
  readonly pods: readonly string[];
  /** How many pods the owner wants by its spec. */
  readonly wanted: number;
  /** Whether this run has removed a pod whose successor was not ready when last seen. */
  readonly waits: boolean;
};

/** The owner's pods that are neither being deleted nor finished: uid to whether the pod is ready. */
export type OwnersPods = ReadonlyMap<string, boolean>;

/** The next step of a turn. */
export type NextOfTurn =
  | { readonly kind: 'remove'; readonly uid: string }
  /** A pod was removed, and its successor is not ready yet. */
  | { readonly kind: 'wait'; readonly ready: number; readonly wanted: number }
  /** The owner lacks pods, and not because of this turn: its pods are left. */
  | { readonly kind: 'below'; readonly ready: number; readonly wanted: number }
  | { readonly kind: 'over' };

/** Returns the next step. Pods that are not ready are removed first, because that costs no capacity. */
export function nextOfTurn({ pods, wanted, waits }: Turn, now: OwnersPods): NextOfTurn {
  const there = pods.filter((uid) => now.has(uid));
  const next = there.find((uid) => now.get(uid) === false) ?? there[0];
  // An owner that was scaled to zero gets no new pods, and its controller removes those that are left.
  if (wanted === 0) return { kind: 'over' };
  const ready = [...now.values()].filter((isReady) => isReady).length;
  if (ready < wanted && waits) return { kind: 'wait', ready, wanted };
  if (next === undefined) return { kind: 'over' };
  return ready < wanted ? { kind: 'below', ready, wanted } : { kind: 'remove', uid: next };
}
