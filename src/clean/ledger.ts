/** The ledger records what `clean` removed and what it left. So there is a closing table even if the work is interrupted. */

/** A trace of archaware that is still there, and why. */
export type Left = {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly reason: string;
};

/** The number of objects of each kind. */
export type Counts = {
  readonly configurations: number;
  readonly gates: number;
  readonly nodes: number;
  readonly labels: number;
  readonly daemonSets: number;
  readonly pods: number;
  readonly annotations: number;
};

/** A kind of trace, which is a row of the closing table. `controllers` are only reported, never removed. */
export type Row = Exclude<keyof Counts, 'labels'> | 'controllers';

export type Item = {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  /** How many labels of archaware a node has. The row of labels counts them together with the node. */
  readonly labels?: number;
};

export type CleanOutcome = {
  readonly removed: Counts;
  /** The number of objects left of each row. Together with `removed`, these are all that were found. */
  readonly remaining: Counts & { readonly controllers: number };
  readonly left: readonly Left[];
};

export type Ledger = {
  /** Records objects that were found and not handled yet. */
  found(row: Row, items: readonly Item[]): void;
  removed(row: Row, item: Item): void;
  left(row: Row, item: Item, reason: string): void;
  /** Records that everything not handled so far is left for this reason. */
  leaveRest(reason: string): void;
  /** Returns how many objects of a row were removed so far, and how many remain. */
  count(row: Row): { readonly removed: number; readonly remaining: number };
  /** Returns the result so far. Everything not handled is left for this reason. */
  outcome(reason: string): CleanOutcome;
};

type Entry = { readonly item: Item; removed: boolean; reason: string | undefined };

/** Creates an empty ledger. */
export function createLedger(): Ledger {
  // There may be 100,000 pods, so their entries are small.
  const rows = new Map<Row, Map<string, Entry>>();
  const put = (row: Row, item: Item, removed: boolean, reason: string | undefined) => {
    const entries = rows.get(row) ?? new Map<string, Entry>();
    rows.set(row, entries);
    const key = `${row === 'configurations' ? item.kind : ''}${item.namespace ?? ''}/${item.name}`;
    // An item that is found again keeps its first entry: at the last search, a node no longer has archaware's labels.
    const known = entries.get(key);
    if (known === undefined) entries.set(key, { item, removed, reason });
    else {
      known.removed = removed;
      known.reason = reason;
    }
  };
  return {
    found(row, items) {
      for (const item of items) put(row, item, false, undefined);
    },
    removed: (row, item) => put(row, item, true, undefined),
    left: (row, item, reason) => put(row, item, false, reason),
    leaveRest(reason) {
      for (const entries of rows.values()) {
        for (const entry of entries.values()) if (!entry.removed) entry.reason ??= reason;
      }
    },
    count(row) {
      const entries = rows.get(row) ?? new Map<string, Entry>();
      let removed = 0;
      for (const entry of entries.values()) if (entry.removed) removed++;
      return { removed, remaining: entries.size - removed };
    },
    outcome(reason) {
      const removed = noCounts();
      const remaining = noCounts();
      const left: Left[] = [];
      for (const [row, entries] of rows) {
        for (const { item, removed: isRemoved, reason: why } of entries.values()) {
          const counts = isRemoved ? removed : remaining;
          counts[row]++;
          counts.labels += item.labels ?? 0;
          if (isRemoved) continue;
          const { kind, namespace, name } = item;
          left.push({ kind, ...(namespace === undefined ? {} : { namespace }), name, reason: why ?? reason });
        }
      }
      const { controllers: _, ...counted } = removed;
      return { removed: counted, remaining, left };
    },
  };
}

function noCounts(): { [row in keyof Counts | 'controllers']: number } {
  return {
    configurations: 0,
    gates: 0,
    nodes: 0,
    labels: 0,
    daemonSets: 0,
    pods: 0,
    annotations: 0,
    controllers: 0,
  };
}
