import type { Clock } from '../../kit/clock.ts';
import type { StoreChange } from '../../kube/watch/collection.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { countsAt, type Witness, witnessOf } from '../../placement/nodes/witness.ts';

/**
 * Creates the memory of the cluster's architectures, as far as nodes count as witnesses for them; at first there are none. It
 * lives as long as the process. One change costs the same in a cluster of any size.
 */
export function createWitnesses(clock: Pick<Clock, 'monotonic'>) {
  /** By the uid of the node. */
  const witnesses = new Map<string, { readonly node: Node; readonly witness: Witness }>();
  const due = new Set<string>();
  const counts = createTally<Witness>(({ architecture }) => [architecture]);
  let current: readonly string[] = [];

  function count(witness: Witness, step: 1 | -1): void {
    if (counts.count(witness, step)) current = [...counts.all()].sort();
  }

  function look(node: Node, isFirst: boolean): void {
    const before = witnesses.get(node.uid)?.witness;
    const witness = witnessOf(before, node, clock.monotonic(), isFirst);
    if (witness === undefined) {
      forget(node.uid);
      return;
    }
    witnesses.set(node.uid, { node, witness });
    if (countsAt(witness) === undefined) due.delete(node.uid);
    else due.add(node.uid);
    if (witness.counts && before?.counts !== true) count(witness, 1);
  }

  function forget(uid: string): void {
    const known = witnesses.get(uid)?.witness;
    witnesses.delete(uid);
    due.delete(uid);
    if (known?.counts) count(known, -1);
  }

  /** Counts the nodes whose time has come. */
  function promote(): void {
    for (const uid of due) {
      const known = witnesses.get(uid);
      if (known !== undefined) look(known.node, false);
    }
  }

  return {
    /** Call it for every change of a node. `isFirst`: the change is part of the first list of nodes. */
    seen({ now, before }: Pick<StoreChange<Node>, 'now' | 'before'>, isFirst: boolean): void {
      // A node that was ready for long enough counts, even if nobody has asked before it stops to be ready.
      promote();
      if (before !== undefined && before.uid !== now?.uid) forget(before.uid);
      if (now !== undefined) look(now, isFirst);
    },
    /** Returns the architectures that count now, sorted; the same array until one begins or ceases to count. */
    architectures(): readonly string[] {
      promote();
      return current;
    },
    /** Returns the milliseconds until another node begins to count if nothing changes; undefined: none is due. */
    dueInMs(): number | undefined {
      const times = [...due].flatMap((uid) => {
        const known = witnesses.get(uid);
        return (known && countsAt(known.witness)) ?? [];
      });
      return times.length === 0
        ? undefined
        : Math.max(0, times.reduce((one, other) => Math.min(one, other)) - clock.monotonic());
    },
  };
}

/**
 * Creates an empty count of the names (of taints, of architectures) that `namesOf` returns for a node or a witness. One change costs the same
 * in a cluster of any size.
 */
export function createTally<T>(namesOf: (item: T) => readonly string[]) {
  const counts = new Map<string, number>();
  return {
    /** Adds or removes an item. Returns whether a name appeared in the cluster or disappeared from it. */
    count(item: T | undefined, step: 1 | -1): boolean {
      let changed = false;
      for (const name of item === undefined ? [] : namesOf(item)) {
        const before = counts.get(name) ?? 0;
        if (before + step > 0) counts.set(name, before + step);
        else counts.delete(name);
        changed ||= before === 0 || before + step === 0;
      }
      return changed;
    },
    all: (): ReadonlySet<string> => new Set(counts.keys()),
  };
}
