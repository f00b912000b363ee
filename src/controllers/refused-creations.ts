import { LRUCache } from 'lru-cache';
import { type Clock, doubled } from '../kit/clock.ts';
import { strangersText } from '../kit/cut.ts';
import { createAllowance } from '../kit/fairness/allowance.ts';
import { type JsonObject, objectAt, stringAt } from '../kit/json.ts';
import { printable } from '../kit/printable.ts';
import type { Regarding } from '../kube/events.ts';
import { ARCHITECTURE_GATE, ARCHITECTURE_LABEL } from '../names.ts';
import { PART_TEXTS, type PlacedPart } from '../placement/refused-parts.ts';

/** A creation of a pod that the API server refused, as the Event of the pod's owner says it. */
export type FailedCreation = {
  /** The owner; its namespace is that of the Event. */
  readonly owner: Regarding & { readonly namespace: string };
  readonly message: string;
};

const NAME = /^[\w.-]{1,253}$/;
const KIND = /^[A-Z][A-Za-z]{0,62}$/;

/**
 * Reads an Event with the reason `FailedCreate` (events.k8s.io/v1); undefined if it is not about an owner in its own namespace. Anybody
 * who may create Events in a namespace can write one, so it is a word about that namespace only.
 */
export function readFailedCreation(event: JsonObject): FailedCreation | undefined {
  const regarding = objectAt(event, 'regarding');
  const namespace = stringAt(objectAt(event, 'metadata'), 'namespace') ?? '';
  const [kind = '', name = '', uid = ''] = ['kind', 'name', 'uid'].map((field) => stringAt(regarding, field));
  const apiVersion = stringAt(regarding, 'apiVersion') ?? '';
  if (stringAt(event, 'reason') !== 'FailedCreate' || stringAt(regarding, 'namespace') !== namespace) return undefined;
  if (!KIND.test(kind) || !NAME.test(name) || !NAME.test(uid) || apiVersion.length > 100) return undefined;
  const message = strangersText(stringAt(event, 'note') ?? '');
  return { owner: { apiVersion, kind, namespace, name, uid }, message };
}

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
type Entry = { readonly parts: Map<PlacedPart, Withdrawal>; saidAt: number };

/**
 * Creates an empty memory, by owner, of the parts of archaware's placement that the API server refuses at the creation of pods.
 */
export function createRefusedCreations({ monotonic }: Pick<Clock, 'monotonic'>) {
  const entries = new LRUCache<string, Entry>({ max: MOST_OWNERS });
  const mayAdd = createAllowance({ ...OWNERS, now: monotonic });
  const keyOf = (namespace: string, uid: string) => `${namespace} ${uid}`;

  /** Whether nothing was refused for as long again as the last pause took. */
  function isOver({ parts }: Entry): boolean {
    const now = monotonic();
    return [...parts.values()].every(({ until, pauseMs }) => now > until + pauseMs);
  }

  /** Returns the entry of an owner; undefined for a new one of a namespace that adds too many. */
  function entryOf(namespace: string, uid: string): Entry | undefined {
    const key = keyOf(namespace, uid);
    const known = entries.get(key);
    if (known !== undefined && !isOver(known)) return known;
    if (known === undefined && !mayAdd(namespace)) return undefined;
    const entry: Entry = { parts: new Map(), saidAt: Number.NEGATIVE_INFINITY };
    entries.set(key, entry);
    return entry;
  }

  /** Records the refusal of a part; whether a review had left the part out. */
  function extend(entry: Entry, part: PlacedPart, isLeftOut: boolean): boolean {
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

/** The most bytes of the refusal in a note: what to do comes after it. */
const REFUSAL_BYTES = 500;

/** What archaware does about the refused part. */
const REACTIONS = {
  withdraw: 'archaware leaves it out of the next pods for a time, and then tries again',
  keep: 'archaware goes on adding it (placement.refused: keep)',
  template: 'it stays in the template',
} as const;

/**
 * Returns the note of the Event `RefusedByPolicy`. The names of pods, which differ each time, are left out, so that repetitions are
 * one Event.
 */
export function refusedNote(
  { message }: Pick<FailedCreation, 'message'>,
  parts: readonly PlacedPart[],
  reaction: keyof typeof REACTIONS,
  taintKey: string,
): string {
  const what = parts.map((part) => PART_TEXTS[part]).join(' and ');
  const allowed = parts.map((part) => ALLOWED[part](taintKey)).join(', ');
  return (
    `pods cannot be created, and the refusal names ${what}, which archaware adds: ${printable(withoutPodName(message), REFUSAL_BYTES)}; ` +
    `${REACTIONS[reaction]}. Allow in the policy that refuses it: ${allowed} (docs/security.md, "Other admission plug-ins")`
  );
}

/** What to allow in the policy of others. */
const ALLOWED: Readonly<Record<PlacedPart, (taintKey: string) => string>> = {
  tolerations: (key) => `tolerations of ${key}`,
  affinity: () => `node affinity on ${ARCHITECTURE_LABEL}`,
  gate: () => `the gate ${ARCHITECTURE_GATE}`,
};

/** Returns a message of a controller about a failed creation without its beginning and the name of the pod. */
function withoutPodName(message: string): string {
  return message
    .replace(/^\(combined from similar events\): /, '')
    .replace(/^Error creating: /, '')
    .replace(/^create Pod \S+ in StatefulSet \S+ failed error: /, '')
    .replace(/^([Pp]ods?) "[^"]*"/, '$1');
}
