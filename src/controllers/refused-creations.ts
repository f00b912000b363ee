import { LRUCache } from 'lru-cache';
import { type Clock, doubled } from '../kit/clock.ts';
import { createAllowance } from '../kit/fairness/allowance.ts';
import type { FailedCreation, PlacedPart } from '../placement/refused-parts.ts';

/** What a refused creation changed. */
type Noted =
  /** The refusal is new, or has lasted so long that it should be said again. */
  | 'say'
  | 'known'
  /** The part was already left out when the creation was refused, so it is not archaware's. */
  | 'not-ours'
  /** Its namespace adds too many owners at once. */
  | 'dropped';

/** How long a part is left out after its first refusal. It doubles with each later one, so that a policy that is gone is noticed. */
const PAUSE_MS = 10 * 60_000;
const LONGEST_PAUSE_MS = 6 * 60 * 60_000;
/** Other replicas hear of a refusal a little later. After this, a creation that is still refused is refused for something else. */
const SETTLED_MS = 30_000;
/** Events live for an hour by default. */
const SAY_AGAIN_MS = 30 * 60_000;
/** The most owners in the memory, about a megabyte. The ones that were refused longest ago give way. */
const MOST_OWNERS = 3_000;
/** How many owners a namespace may add, so that a flood of Events leads to no flood of archaware's own Events. */
const OWNERS = { burst: 64, perSecond: 0.2 } as const;

type Withdrawal = { since: number; until: number; pauseMs: number };
type RefusedEntry = { readonly parts: Map<PlacedPart, Withdrawal>; saidAt: number };

/** Creates an empty memory, by owner, of the parts of archaware's placement that the API server refuses at the creation of pods. */
export function createRefusedCreations({ monotonic }: Pick<Clock, 'monotonic'>) {
  const entries = new LRUCache<string, RefusedEntry>({ max: MOST_OWNERS });
  const mayAdd = createAllowance({ ...OWNERS, now: monotonic });
  const keyOf = (namespace: string, uid: string) => `${namespace} ${uid}`;

  /** Whether nothing was refused for as long again as the last pause took. */
  function isOver({ parts }: RefusedEntry): boolean {
    const now = monotonic();
    return [...parts.values()].every(({ until, pauseMs }) => now > until + pauseMs);
  }

  /** Returns the entry of an owner; undefined for a new one of a namespace that adds too many. */
  function entryOf(namespace: string, uid: string): RefusedEntry | undefined {
    const key = keyOf(namespace, uid);
    const known = entries.get(key);
    if (known !== undefined && !isOver(known)) return known;
    if (known === undefined && !mayAdd(namespace)) return undefined;
    const entry: RefusedEntry = { parts: new Map(), saidAt: Number.NEGATIVE_INFINITY };
    entries.set(key, entry);
    return entry;
  }

  /** Records the refusal of a part; whether a review had left the part out. */
  function extend(entry: RefusedEntry, part: PlacedPart, isLeftOut: boolean): boolean {
    const now = monotonic();
    const known = entry.parts.get(part);
    if (known !== undefined && now < known.until) return isLeftOut && now - known.since > SETTLED_MS;
    const pauseMs = known === undefined ? PAUSE_MS : doubled(1, known.pauseMs, LONGEST_PAUSE_MS);
    entry.parts.set(part, { since: now, until: now + pauseMs, pauseMs });
    return false;
  }

  return {
    /** Records a refusal. `isLeftOut`: whether reviews leave a refused part out. */
    note({ namespace, uid }: FailedCreation['owner'], parts: readonly PlacedPart[], isLeftOut: boolean): Noted {
      const entry = entryOf(namespace, uid);
      if (entry === undefined) return 'dropped';
      const wasLeftOut = parts.map((part) => extend(entry, part, isLeftOut));
      if (wasLeftOut.every((was) => was)) return 'not-ours';
      return monotonic() - entry.saidAt < SAY_AGAIN_MS ? 'known' : 'say';
    },
    /** Call it when the refusal was said: only the leader can, and a later leader has not said it. */
    said({ namespace, uid }: FailedCreation['owner']): void {
      const entry = entries.peek(keyOf(namespace, uid));
      if (entry !== undefined) entry.saidAt = monotonic();
    },
    /** Returns the namespaces in which tolerations are left out of pods of some owner now. */
    *refusing(): Iterable<string> {
      const now = monotonic();
      const refusing = [...entries.entries()].filter(([, { parts }]) => now < (parts.get('tolerations')?.until ?? 0));
      yield* new Set(refusing.map(([key]) => key.slice(0, key.indexOf(' '))));
    },
    /** Returns the parts to leave out of a pod of this owner now. */
    refused(namespace: string, uid: string): readonly PlacedPart[] {
      const entry = entries.peek(keyOf(namespace, uid));
      const now = monotonic();
      return [...(entry?.parts ?? [])].flatMap(([part, { until }]) => (now < until ? part : []));
    },
  };
}
