/** The ledger records what `clean` removed and what it left. So there is a closing table even if the work is interrupted. */

import { type NamedObject, objectName } from '../placement/objects/kinds.ts';

/** A trace of archaware that is still there, and why. */
export type Left = NamedObject & { readonly reason: string };

const NO_COUNTS = {
  configurations: 0,
  gates: 0,
  nodes: 0,
  labels: 0,
  daemonSets: 0,
  pods: 0,
  annotations: 0,
  reports: 0,
};
type OutcomeCounts = Readonly<typeof NO_COUNTS>;

/** A kind of trace, which is a row of the closing table. `controllers` are only reported, never removed. */
export type Row = Exclude<keyof OutcomeCounts, 'labels'> | 'controllers';

export type Item = NamedObject & {
  /** How many labels of archaware a node has. The row of labels counts them together with the node. */
  readonly labels?: number;
};

export type CleanOutcome = {
  readonly removed: OutcomeCounts;
  /** The number of objects left of each row. Together with `removed` and `kept`, these are all that were found. */
  readonly remaining: OutcomeCounts & { readonly controllers: number };
  readonly left: readonly Left[];
  /** The pods and DaemonSets that keep harmless tolerations, affinity or annotations, and why. They do not count in `remaining`. */
  readonly kept: readonly Left[];
};

export type OutcomeLedger = ReturnType<typeof createLedger>;

type OutcomeEntry = { readonly item: Item; state: 'open' | 'removed' | 'kept'; reason: string | undefined };

/** Creates an empty ledger. */
export function createLedger() {
  // There may be 100,000 pods, so their entries are small.
  const rows = new Map<Row, Map<string, OutcomeEntry>>();
  const keyOf = (row: Row, { kind, namespace = '', name }: Item) =>
    `${row === 'configurations' ? kind : ''}${namespace}/${name}`;
  const put = (row: Row, item: Item, state: OutcomeEntry['state'], reason: string | undefined) => {
    const entries = rows.get(row) ?? new Map<string, OutcomeEntry>();
    rows.set(row, entries);
    const key = keyOf(row, item);
    // An item that is found again keeps its first entry: at the last search, a node no longer has archaware's labels.
    const known = entries.get(key);
    if (known === undefined) entries.set(key, { item, state, reason });
    else {
      known.state = state;
      known.reason = reason;
    }
  };
  return {
    /** Records objects that were found and not handled yet. */
    found(row: Row, items: readonly Item[]): void {
      for (const item of items) put(row, item, 'open', undefined);
    },
    removed: (row: Row, item: Item): void => put(row, item, 'removed', undefined),
    left: (row: Row, item: Item, reason: string): void => put(row, item, 'open', reason),
    /** Records a pod or a DaemonSet that stays as it is on purpose. */
    kept: (row: 'pods' | 'daemonSets', item: Item, reason: string): void => put(row, item, 'kept', reason),
    /** Records that everything not handled so far is left for this reason. */
    leaveRest(reason: string): void {
      for (const entries of rows.values()) {
        for (const entry of entries.values()) if (entry.state === 'open') entry.reason ??= reason;
      }
    },
    remains: (row: Row, item: Item): boolean => rows.get(row)?.get(keyOf(row, item))?.state === 'open',
    count(row: Row): { readonly removed: number; readonly remaining: number } {
      const entries = rows.get(row) ?? new Map<string, OutcomeEntry>();
      const counts = { open: 0, removed: 0, kept: 0 };
      for (const { state } of entries.values()) counts[state]++;
      return { removed: counts.removed, remaining: counts.open };
    },
    /** Returns the result so far. Items without a result are reported as left, with this reason. */
    outcome(reason: string): CleanOutcome {
      const removed = { ...NO_COUNTS, controllers: 0 };
      const remaining = { ...NO_COUNTS, controllers: 0 };
      const left: Left[] = [];
      const kept: Left[] = [];
      for (const [row, entries] of rows) {
        for (const { item, state, reason: why = reason } of entries.values()) {
          const entry = { ...objectName(item), reason: why };
          if (state === 'kept') {
            kept.push(entry);
            continue;
          }
          const counts = state === 'removed' ? removed : remaining;
          counts[row]++;
          counts.labels += item.labels ?? 0;
          if (state === 'open') left.push(entry);
        }
      }
      const { controllers: _, ...counted } = removed;
      return { removed: counted, remaining, left, kept };
    },
  };
}
