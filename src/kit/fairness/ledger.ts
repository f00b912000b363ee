type LedgerOptions = {
  /** The most bytes of one group. */
  readonly perGroup: number;
  /** The most bytes of all groups together. */
  readonly inAll: number;
  /** The bytes that each group gets even if the other groups have taken all: a tenant may have many groups. */
  readonly always: number;
};

/** Counts the bytes that a memory takes, by key and by group (a namespace): a limit on the number of entries limits no memory. */
export type Ledger = {
  /**
   * Books bytes for a key, in place of those that it had. False if there is no room for them: then the key has none, and its
   * value must not be kept.
   */
  book(key: string, group: string, bytes: number): boolean;
  free(key: string): void;
  has(key: string): boolean;
  readonly size: number;
  readonly bytes: number;
};

/** Creates an empty ledger. */
export function createLedger({ perGroup, inAll, always }: LedgerOptions): Ledger {
  const booked = new Map<string, { readonly group: string; readonly bytes: number }>();
  const groups = new Map<string, number>();
  let all = 0;

  function free(key: string): void {
    const entry = booked.get(key);
    if (entry === undefined) return;
    booked.delete(key);
    all -= entry.bytes;
    const left = (groups.get(entry.group) ?? 0) - entry.bytes;
    if (left > 0) groups.set(entry.group, left);
    else groups.delete(entry.group);
  }

  return {
    book(key, group, bytes) {
      free(key);
      const ofGroup = (groups.get(group) ?? 0) + bytes;
      if (ofGroup > perGroup || (all + bytes > inAll && ofGroup > always)) return false;
      booked.set(key, { group, bytes });
      groups.set(group, ofGroup);
      all += bytes;
      return true;
    },
    free,
    has: (key) => booked.has(key),
    get size() {
      return booked.size;
    },
    get bytes() {
      return all;
    },
  };
}
