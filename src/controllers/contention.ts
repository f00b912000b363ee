import { hash } from 'node:crypto';
import type { Clock } from '../kit/clock.ts';

/** Notices when another writer keeps undoing archaware's writes, and stops writing before the two overload the cluster. */
export type Contention = {
  /** Returns the milliseconds to leave the object alone; 0: write. `began`: this call is the first to notice the contention. */
  check(key: string, intent: string): { readonly waitMs: number; readonly began: boolean };
  /** Records that the intent was written. */
  wrote(key: string, intent: string): void;
  forget(key: string): void;
  /** Counts the objects that are left alone now. */
  count(): number;
};

const WINDOW_MS = 10 * 60_000;
const UNDONE = 3;
const CAP_MS = 24 * 60 * 60_000;

/** The longest intent that is remembered as it is: the names of images in the record of a template make it long. */
const LONGEST_REMEMBERED = 256;

type Record = { intent: string; writes: number[]; blockedUntil: number; blocks: number };

function idOf(intent: string): string {
  return intent.length > LONGEST_REMEMBERED ? hash('sha256', intent, 'base64') : intent;
}

/** Creates an empty memory, by object. */
export function createContention(clock: Clock): Contention {
  const records = new Map<string, Record>();
  return {
    check(key, intent) {
      const record = records.get(key);
      const now = clock.monotonic();
      if (record === undefined || record.intent !== idOf(intent)) return { waitMs: 0, began: false };
      if (record.blockedUntil > now) return { waitMs: record.blockedUntil - now, began: false };
      const quietMs = now - (record.writes.at(-1) ?? now);
      if (quietMs > WINDOW_MS * 2 ** record.blocks) record.blocks = 0;
      // After a contention was noticed, one more undone write shows that it goes on.
      const allowed = record.blocks === 0 ? UNDONE : 1;
      if (record.blocks === 0) record.writes = record.writes.filter((at) => now - at < WINDOW_MS);
      // If the same write is wanted again, every earlier one was undone.
      if (record.writes.length < allowed) return { waitMs: 0, began: false };
      const waitMs = Math.min(CAP_MS, WINDOW_MS * 2 ** record.blocks);
      record.blocks++;
      record.blockedUntil = now + waitMs;
      record.writes = [];
      return { waitMs, began: true };
    },
    wrote(key, intent) {
      const record = records.get(key);
      const [now, id] = [clock.monotonic(), idOf(intent)];
      if (record?.intent === id) record.writes.push(now);
      else records.set(key, { intent: id, writes: [now], blockedUntil: 0, blocks: 0 });
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
