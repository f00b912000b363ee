import type { Clock } from '../kit/clock.ts';
import type { Result } from '../kube/control-loop.ts';
import { isOlder, type Stored } from '../kube/watch/store.ts';
import type { Decision, ImageSet } from '../placement/decide.ts';
import { createShared } from '../placement/objects/equal-values.ts';
import type { PodTemplate } from '../placement/objects/pod.ts';
import type { Toleration } from '../placement/patch/tolerations.ts';
import { decisionNote } from '../placement/reasons.ts';
import type { Settings } from '../placement/settings.ts';
import type { ImageSource } from './image-source.ts';
import { type Basis, createRecords, type Decided, type Notes, note, type ObjectRecord } from './object-record.ts';
import { createWaiting, NO_ROOM_AGAIN_MS } from './waiting.ts';

/** The memory of a term about pods or DaemonSets: their records, and which of them wait for which image. */
export type Memory = ReturnType<typeof createMemory>;

/** The interval at which an object that was placed without an unknown image is decided again. The image has its own retry times. */
export const OPEN_AGAIN_MS = 60_000;
/** The interval at which a held object is decided again: somebody may have pushed a better image under the same tag. */
export const HELD_AGAIN_MS = 10 * 60_000;

/** Returns the result for an object that is not placed now. `hasRoom`: whether the ends of its lookups queue it. */
export function notPlaced(
  decision: Exclude<Decision, { kind: 'place' }>,
  { os }: Pick<PodTemplate, 'os'>,
  { schedulable }: Settings,
  hasRoom: boolean,
): Result {
  if (decision.kind === 'wait') {
    return { outcome: 'waiting', againInMs: hasRoom ? decision.againInMs : NO_ROOM_AGAIN_MS };
  }
  return { outcome: 'held', againInMs: HELD_AGAIN_MS, detail: decisionNote(decision, os, schedulable) };
}

/** The most bytes of values that objects share: enough for the templates of nearly every cluster. */
const MOST_SHARED = 4 * 1024 * 1024;

/** Creates an empty memory. It will have a record for every pod, so values that are equal in several records are kept once. */
export function createMemory(images: Pick<ImageSource, 'canonicalOf'>, clock: Clock) {
  const records = createRecords();
  const waiting = createWaiting(clock);
  const share = createShared({ most: MOST_SHARED });
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
      return {
        ...rest,
        images: first(images),
        failed: first(failed),
        againInMs: undefined,
        givesUpInMs: undefined,
      };
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
  if (known !== undefined && (known.of === of || JSON.stringify(known.of) === JSON.stringify(of)))
    return now - known.at;
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
