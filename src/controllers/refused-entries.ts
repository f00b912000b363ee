import type { Clock } from '../kit/clock.ts';
import { type ApiError, isRefusal, mayBeWrongStatus, refusesContent } from '../kube/errors.ts';
import type { WriteResult } from '../kube/writer.ts';

/**
 * Remembers which entries of writes (a toleration, a taint, a label) the API server refuses, by namespace, so that one of them does
 * not take the others of its patch along, and is not sent again with every other object.
 */
export type RefusedEntries = {
  /** Returns the milliseconds until an entry may be tried again; 0: now. `namespace`: empty for nodes. */
  pauseMs(namespace: string, entry: string): number;
  /**
   * Finds out which entries of a refused write the API server takes, by a dry run of each, and remembers the others. Returns
   * undefined if it takes all or none, so that the refusal is not about single entries; then the same entries are not tried one by
   * one again before a pause is over. `hasOthers`: the object has an entry of
   * archaware already, which proves that the object itself may be written.
   */
  sift(
    namespace: string,
    entries: readonly string[],
    refusal: ApiError,
    parts: SiftParts,
  ): Promise<ReadonlySet<string> | undefined>;
  /** Call it when a write of these entries succeeded. */
  took(namespace: string, entries: readonly string[]): void;
};

type SiftParts = {
  readonly hasOthers: boolean;
  /** Whether the refusal counts as permanent (see refusals.ts), so that a 500 is one, too. Default: false. */
  readonly isForGood?: boolean;
  /** Has the API server check a write of this entry alone, without storing it. */
  readonly dryRun: (entry: string) => Promise<WriteResult>;
};

/** The pause after the first refusal of an entry. It doubles with each one that follows. */
const PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
/** The most entries that are remembered: the oldest is forgotten, and then tried once more. */
const MOST = 2_000;

/** Creates an empty memory. */
export function createRefusedEntries(clock: Pick<Clock, 'monotonic'>): RefusedEntries {
  const refused = new Map<string, { readonly until: number; readonly pauseMs: number }>();
  const keyOf = (namespace: string, entry: string) => `${namespace} ${entry}`;

  const leftOf = (key: string) => Math.max(0, (refused.get(key)?.until ?? 0) - clock.monotonic());

  function remember(key: string): void {
    // Several workers may have sent the entry at the same time.
    if (leftOf(key) > 0) return;
    const known = refused.get(key);
    const pauseMs = known === undefined ? PAUSE_MS : Math.min(LONGEST_PAUSE_MS, known.pauseMs * 2);
    refused.delete(key);
    refused.set(key, { until: clock.monotonic() + pauseMs, pauseMs });
    const [oldest] = refused.keys();
    if (refused.size > MOST && oldest !== undefined) refused.delete(oldest);
  }

  return {
    pauseMs: (namespace, entry) => leftOf(keyOf(namespace, entry)),
    async sift(namespace, entries, refusal, { hasOthers, isForGood = false, dryRun }) {
      const isOfContent = (error: ApiError) => refusesContent(error) || (isForGood && mayBeWrongStatus(error));
      if (!isOfContent(refusal)) return undefined;
      const [only, ...others] = entries;
      if (only !== undefined && others.length === 0) {
        // Nothing is left to be written, but other objects need not send it, too.
        const key = keyOf(namespace, only);
        if (hasOthers || refused.has(key)) remember(key);
        return undefined;
      }
      // With the same entries, each object would cost as many requests, and all of them for nothing.
      const together = keyOf(namespace, entries.join(' '));
      if (leftOf(together) > 0) return undefined;
      const taken = new Set<string>();
      const left: string[] = [];
      for (const entry of entries) {
        try {
          const result = await dryRun(entry);
          if (result.kind !== 'written') return undefined;
          taken.add(entry);
        } catch (error) {
          if (!isRefusal(error) || !isOfContent(error)) throw error;
          left.push(entry);
        }
      }
      if (taken.size === 0 || left.length === 0) {
        remember(together);
        return undefined;
      }
      for (const entry of left) remember(keyOf(namespace, entry));
      return taken;
    },
    took(namespace, entries) {
      if (refused.size === 0) return;
      for (const entry of [...entries, entries.join(' ')]) refused.delete(keyOf(namespace, entry));
    },
  };
}
