/**
 * The turn of an owner whose pods are replaced one at a time, so that its workload does not go down: the next pod goes when
 * the owner has as many ready pods as when the turn began.
 */
export type Turn = {
  /** The uids of the pods that are to go. */
  readonly pods: readonly string[];
  /** How many pods of the owner were ready when the turn began. */
  readonly target: number;
};

/** The owner's pods that are neither being deleted nor over, by uid, and whether each is ready. */
export type OwnersPods = ReadonlyMap<string, boolean>;

/** What is next in a turn. */
export type NextOfTurn =
  | { readonly kind: 'remove'; readonly uid: string }
  /** A pod went, and its successor is not ready yet. */
  | { readonly kind: 'wait'; readonly ready: number }
  | { readonly kind: 'over' };

/** How many pods are ready. */
export function readyOf(pods: OwnersPods): number {
  return [...pods.values()].filter((ready) => ready).length;
}

/** What is next. Pods that are not ready go first: nothing is missed with them. */
export function nextOfTurn({ pods, target }: Turn, now: OwnersPods): NextOfTurn {
  // Scaled to nothing, or deleted: no successor is to come.
  if (now.size === 0) return { kind: 'over' };
  const ready = readyOf(now);
  if (ready < target) return { kind: 'wait', ready };
  const there = pods.filter((uid) => now.has(uid));
  const next = there.find((uid) => now.get(uid) === false) ?? there[0];
  return next === undefined ? { kind: 'over' } : { kind: 'remove', uid: next };
}
