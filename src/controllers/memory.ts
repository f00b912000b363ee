import { hash } from 'node:crypto';
import type { Clock } from '../kit/clock.ts';
import { createShared } from '../kit/fairness/equal-values.ts';
import { isSame } from '../kit/json.ts';
import type { Result } from '../kube/control-loop.ts';
import { isOlder, type Stored } from '../kube/watch/collection.ts';
import type { Decision, ImageSet } from '../placement/decide.ts';
import type { SkipReason } from '../placement/eligibility.ts';
import type { Pod, PodTemplate } from '../placement/objects/pod.ts';
import type { Toleration } from '../placement/patch/tolerations.ts';
import { decisionNote } from '../placement/reasons.ts';
import type { Settings } from '../placement/settings.ts';
import type { Subject } from '../placement/subject.ts';
import type { ImageSource } from './image-source.ts';
import { createWaiting, NO_ROOM_AGAIN_MS } from './waiting.ts';

/** The subject of a decision: its key (`placement/subject.ts`), and the settings that applied. */
export type Basis = { readonly subjectKey: string; readonly settings: Settings };

/** What was decided last, and from what. */
export type Decided = Basis & {
  readonly decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
};

/** No decision was carried out yet. */
type Undecided = { readonly subjectKey: undefined; readonly settings: undefined; readonly decision: undefined };

/**
 * What a term knows about one object: a pod, a DaemonSet or a node. Every pod of the cluster has one, so it has only the fields that
 * every pod needs, and the objects that are alike share their values. The rest is in `notes` for as long as it is needed.
 */
export type ObjectRecord = (Decided | Undecided) & {
  readonly uid: string;
  /**
   * The time of the decision, by the monotonic clock, in whole milliseconds: V8 keeps a fraction in an object of its own. Undefined:
   * it must be made again, because something other than the object has changed.
   */
  at: number | undefined;
  notes: Notes | undefined;
};

/** What is known about few objects, or not for long. Set with {@link note}. All times are of the monotonic clock. */
export type Notes = {
  /** Since when the object waits for images. `of`: what is equal only for equal images. */
  readonly since?: { readonly of: string | Pod['images']; readonly at: number };
  /** The tolerations that this process wrote for the decision, until the watch has shown them. */
  readonly wrote?: readonly Toleration[];
  /** The pod's subject after the write under way. */
  readonly expected?: Subject;
  /** The version that the last write led to, until the watch shows it. */
  readonly answered?: { readonly resourceVersion: string; readonly at: number };
  /** Writes that another writer undoes (`refusals.ts`). */
  readonly contested?: {
    readonly intent: string;
    readonly writes: readonly number[];
    readonly blockedUntil: number;
    readonly blocks: number;
  };
  /** Writes that the API server refuses (`refusals.ts`). */
  readonly refused?: { readonly what: string; readonly since: number; readonly count: number };
  /** How many parts of a gated pod's write were given up after lasting refusals, and the first of these. */
  readonly lessened?: { readonly by: number; readonly refusal: Error };
  /** The problems that have an Event (`announce.ts`). */
  readonly announced?: ReadonlyMap<string, { readonly at: number; readonly outlook: string }>;
  /** When a pod that waits starts at the latest, on the wall clock. */
  readonly startsAt?: number;
  /** How often a list of tolerations was given back in vain, and when the next try is due (`daemonset/give-back.ts`). */
  readonly givenBack?: { readonly count: number; readonly notBefore: number };
  /** Until when a lost record of a template is not written again (`daemonset/template.ts`). */
  readonly unrecordedUntil?: number;
};

/** Sets a part of what is known about an object; undefined removes it. */
export function note<Part extends keyof Notes>(record: ObjectRecord, part: Part, value: Notes[Part] | undefined): void {
  if (value !== undefined) record.notes = { ...record.notes, [part]: value };
  if (value !== undefined || record.notes?.[part] === undefined) return;
  const left = Object.entries(record.notes).filter(([name]) => name !== part);
  record.notes = left.length === 0 ? undefined : Object.fromEntries(left);
}

/** The longest text that is remembered as it is: names of images make it long. */
const LONGEST_REMEMBERED = 256;

/** Returns what a problem or the intent of a write is remembered as. */
export function idOf(text: string): string {
  return text.length > LONGEST_REMEMBERED ? hash('sha256', text, 'base64') : text;
}

/** Creates the records of a term, by the key of the object; at first there are none. */
export function createRecords() {
  const all = new Map<string, ObjectRecord>();
  return {
    all,
    /** Returns the record of an object. What was known about another object with the same key is forgotten. */
    of(key: string, uid: string): ObjectRecord {
      const known = all.get(key);
      if (known?.uid === uid) return known;
      const record: ObjectRecord = {
        uid,
        // Each field is named: V8 keeps those of a spread in a second object (37 bytes for each pod).
        subjectKey: undefined,
        settings: undefined,
        decision: undefined,
        at: undefined,
        notes: undefined,
      };
      all.set(key, record);
      return record;
    },
    forget: (key: string): void => void all.delete(key),
  };
}

/** Returns the objects that were decided. */
export function decidedOf(records: ReadonlyMap<string, ObjectRecord>): ReadonlyMap<string, Decided> {
  const found = new Map<string, Decided>();
  for (const [key, record] of records) if (record.decision !== undefined) found.set(key, record);
  return found;
}

/** The memory of a term about pods or DaemonSets: their records, and which of them wait for which image. */
export type Memory = ReturnType<typeof createMemory>;

/** The interval at which an object that was placed without an unknown image is decided again. The image has its own retry times. */
export const OPEN_AGAIN_MS = 60_000;
/** The interval at which a held object is decided again: somebody may have pushed a better image under the same tag. */
export const HELD_AGAIN_MS = 10 * 60_000;

/** Returns the result for an object that is not placed now. `hasRoom`: whether the ends of its lookups queue it. */
export function notPlaced(
  decision: Exclude<Decision, { kind: 'place' }>,
  { runtime }: Pick<PodTemplate, 'runtime'>,
  { schedulable }: Settings,
  hasRoom: boolean,
): Result {
  if (decision.kind === 'wait') {
    return { outcome: 'waiting', againInMs: hasRoom ? decision.againInMs : NO_ROOM_AGAIN_MS };
  }
  return { outcome: 'held', againInMs: HELD_AGAIN_MS, detail: decisionNote(decision, runtime.os, schedulable) };
}

/** The most bytes of values that objects share: enough for the templates of nearly every cluster. */
const MOST_SHARED = 4 * 1024 * 1024;

/** Creates an empty memory. It will have a record for every pod, so values that are equal in several records are kept once. */
export function createMemory(images: Pick<ImageSource, 'canonicalOf'>, clock: Clock) {
  const records = createRecords();
  const waiting = createWaiting(clock);
  const share = createShared(MOST_SHARED);
  return {
    ...records,
    lookupEnded: waiting.lookupEnded,
    /**
     * Records a decision whose write, if it needed one, is done. `wrote`: the tolerations that the object must have from now on. False
     * if the ends of its lookups will not queue the object, because there is no room to remember their names.
     */
    remember(
      key: string,
      record: ObjectRecord,
      { subjectKey, settings }: Basis,
      decision: Decided['decision'],
      wrote: readonly Toleration[] = [],
    ): boolean {
      const kept = share(keptOf(decision));
      Object.assign(record, { subjectKey: share(subjectKey), settings, decision: kept });
      record.at = Math.floor(clock.monotonic());
      note(record, 'wrote', wrote.length === 0 ? undefined : wrote);
      const isOver = decision.kind === 'skip' || isFinal(decision);
      if (isOver) note(record, 'since', undefined);
      return waiting.set(key, isOver ? [] : share(imagesUnknown(decision).map(images.canonicalOf)));
    },
    /** Makes the next reconciliation decide again, because something other than the object has changed. */
    invalidate(key: string): void {
      const record = records.all.get(key);
      if (record !== undefined) record.at = undefined;
    },
    forget(key: string): void {
      records.forget(key);
      waiting.set(key, []);
    },
  };
}

/** How many entries are kept of each list of a decision: they are for tables and metrics only, and strangers choose how many there are. */
const MOST_NAMED = 16;

/** Returns what is kept of a decision. The time to wait is over soon, and makes each decision unlike all others. */
function keptOf(decision: Decided['decision']): Decided['decision'] {
  const first = <T>(list: readonly T[]) => (list.length > MOST_NAMED ? list.slice(0, MOST_NAMED) : list);
  const sets = (images: readonly ImageSet[]) =>
    first(images).map((each) => ({ ...each, platforms: first(each.platforms) }));
  switch (decision.kind) {
    case 'skip':
      return decision;
    case 'wait': {
      const { images, failed, queued: _queued, ...rest } = decision;
      return { ...rest, images: first(images), failed: first(failed), againInMs: undefined, givesUpInMs: undefined };
    }
    case 'hold':
      return { ...decision, images: sets(decision.images) };
    case 'place': {
      const { failed, unknown, images } = decision;
      return { ...decision, failed: first(failed), unknown: first(unknown), images: sets(images) };
    }
    default:
      return decision satisfies never;
  }
}

/** Whether a decision depends on no lookup any more. */
export function isFinal(decision: Decided['decision']): boolean {
  return decision.kind !== 'wait' && imagesUnknown(decision).length === 0;
}

/** A record whose decision is still valid. */
export type Holding = ObjectRecord & Decided & { at: number };

/**
 * Whether the last decision need not be made again: it depends on no lookup, and nothing that decides has changed. `subjectKey`: called
 * only where nothing else says no, because to make a key takes longer than all the rest.
 */
export function holds(record: ObjectRecord, subjectKey: () => string): record is Holding {
  if (record.decision === undefined || record.at === undefined) return false;
  return isFinal(record.decision) && record.subjectKey === subjectKey();
}

/** Returns the milliseconds since an object was first decided with these images. `of`: what is equal only for equal images. */
export function waitedMs(record: ObjectRecord, of: NonNullable<Notes['since']>['of'], now: number): number {
  const known = record.notes?.since;
  // Pods share equal lists, so nearly always one look is enough.
  if (known !== undefined && isSame(known.of, of)) return now - known.at;
  note(record, 'since', { of, at: now });
  return 0;
}

/** The longest wait. After etcd is restored from a backup, versions start again lower, and the event never comes. */
const MOST_BEHIND_MS = 30_000;

/**
 * Records the version that a write of this process led to. Until the watch shows it, the store is behind, and a decision would use the
 * object as it was before the write. `seen`: what the store has, since the event often arrives before the answer to the write.
 */
export function answered(record: ObjectRecord, resourceVersion: string, seen: Stored | undefined, now: number): void {
  if (seen?.uid === record.uid && !isOlder(seen.resourceVersion, resourceVersion)) return;
  note(record, 'answered', { resourceVersion, at: now });
}

/** Returns the milliseconds to wait for the event of the last write; 0: the object that was seen is up to date. */
export function behindMs(record: ObjectRecord, seen: Stored, now: number): number {
  const last = record.notes?.answered;
  if (last === undefined) return 0;
  const leftMs = MOST_BEHIND_MS - (now - last.at);
  if (isOlder(seen.resourceVersion, last.resourceVersion) && leftMs > 0) return leftMs;
  note(record, 'answered', undefined);
  return 0;
}

/** Returns the images whose lookup may change the decision. */
function imagesUnknown(decision: Decided['decision']): readonly string[] {
  if (decision.kind === 'wait') return decision.images;
  return decision.kind === 'place' ? decision.unknown : [];
}
