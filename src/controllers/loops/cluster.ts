import type { Clock } from '../../kit/clock.ts';
import type { Change } from '../../kube/watch/collection.ts';
import { type Node, taintKinds } from '../../placement/nodes/node.ts';
import { createTally } from '../node/taint-tally.ts';
import type { Watches } from '../watches.ts';

/** The architectures and taints of all nodes together, for the length of a term. */
export type Cluster = ReturnType<typeof createCluster>;

/** Starts without nodes. `onArchitectures` is called when an architecture joined or left, which may be long after its nodes did. */
export function createCluster(
  witnesses: Watches['witnesses'],
  clock: Pick<Clock, 'after'>,
  onArchitectures: () => void,
) {
  const taints = createTally(taintKinds);
  let architectures = witnesses.architectures();
  let cancel: (() => void) | undefined;

  function check(): void {
    cancel?.();
    const now = witnesses.architectures();
    const dueInMs = witnesses.dueInMs();
    cancel = dueInMs === undefined ? undefined : clock.after(dueInMs, check);
    if (now === architectures) return;
    architectures = now;
    onArchitectures();
  }

  return {
    /** Returns the architectures that count for objects which follow the cluster's. They change only with `onArchitectures`. */
    architectures: (): readonly string[] => architectures,
    taints: taints.all,
    begin(nodes: Iterable<Node>): void {
      for (const node of nodes) taints.count(node, 1);
      check();
    },
    /** Counts a change. Returns whether a taint appeared in the cluster or disappeared from it. */
    changed({ now, before }: Pick<Change<Node>, 'now' | 'before'>): boolean {
      const appeared = taints.count(now, 1);
      const went = taints.count(before, -1);
      check();
      return appeared || went;
    },
    end: (): void => cancel?.(),
  };
}
