/**
 * The replacement of an owner's pods, one at a time, so that its workload stays up. The next pod is removed when the owner has as
 * many ready pods as when the turn began.
 */
export type Turn = {
  /** The uids of the pods to remove. */
  readonly pods: readonly string[];
  /** How many pods of the owner were ready when the turn began. */
  readonly target: number;
};

/** The owner's pods that are neither being deleted nor finished: uid to whether the pod is ready. */
export type OwnersPods = ReadonlyMap<string, boolean>;

/** The next step of a turn. */
export type NextOfTurn =
  | { readonly kind: 'remove'; readonly uid: string }
  /** A pod was removed, and its replacement is not ready yet. */
  | { readonly kind: 'wait'; readonly ready: number }
  | { readonly kind: 'over' };

/** Counts the ready pods. */
export function readyOf(pods: OwnersPods): number {
  return [...pods.values()].filter((ready) => ready).length;
}

/** Returns the next step. Pods that are not ready are removed first, because that costs no capacity. */
export function nextOfTurn({ pods, target }: Turn, now: OwnersPods): NextOfTurn {
  // The owner was scaled to zero or deleted: no replacement will come.
  if (now.size === 0) return { kind: 'over' };
  const ready = readyOf(now);
  if (ready < target) return { kind: 'wait', ready };
  const there = pods.filter((uid) => now.has(uid));
  const next = there.find((uid) => now.get(uid) === false) ?? there[0];
  return next === undefined ? { kind: 'over' } : { kind: 'remove', uid: next };
}
