import type { Clock } from '../kit/clock.ts';

/** Notices when another writer keeps undoing what we write, and stops before a quarrel becomes an outage. */
export type Contention = {
  /** Milliseconds to leave the object alone; 0: write. `began`: this call is the one that noticed. */
  check(key: string, intent: string): { readonly waitMs: number; readonly began: boolean };
  /** The intent was written. */
  wrote(key: string, intent: string): void;
  forget(key: string): void;
  /** Objects that are left alone at this moment. */
  count(): number;
};

const WINDOW_MS = 10 * 60_000;
const UNDONE = 3;
const CAP_MS = 24 * 60 * 60_000;

type Record = { intent: string; writes: number[]; blockedUntil: number; blocks: number };

/** Creates the memory of it, by object. */
export function createContention(clock: Clock): Contention {
  const records = new Map<string, Record>();
  return {
    check(key, intent) {
      const record = records.get(key);
      const now = clock.monotonic();
      if (record === undefined || record.intent !== intent) return { waitMs: 0, began: false };
      if (record.blockedUntil > now) return { waitMs: record.blockedUntil - now, began: false };
      const quietMs = now - (record.writes.at(-1) ?? now);
      if (quietMs > WINDOW_MS * 2 ** record.blocks) record.blocks = 0;
      // Once it has been a quarrel, one more undone write shows that it still is.
      const allowed = record.blocks === 0 ? UNDONE : 1;
      if (record.blocks === 0) record.writes = record.writes.filter((at) => now - at < WINDOW_MS);
      // Wanting to write the same again means that every earlier write of it was undone.
      if (record.writes.length < allowed) return { waitMs: 0, began: false };
      const waitMs = Math.min(CAP_MS, WINDOW_MS * 2 ** record.blocks);
      record.blocks++;
      record.blockedUntil = now + waitMs;
      record.writes = [];
      return { waitMs, began: true };
    },
    wrote(key, intent) {
      const record = records.get(key);
      const now = clock.monotonic();
      if (record?.intent === intent) record.writes.push(now);
      else records.set(key, { intent, writes: [now], blockedUntil: 0, blocks: 0 });
    },
    forget: (key) => void records.delete(key),
    count() {
      const now = clock.monotonic();
      let count = 0;
      for (const { blockedUntil } of records.values()) if (blockedUntil > now) count++;
      return count;
    },
  };
}
