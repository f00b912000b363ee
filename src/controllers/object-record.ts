import { hash } from 'node:crypto';
import type { Decision } from '../placement/decide.ts';
import type { SkipReason } from '../placement/eligibility.ts';
import type { Pod } from '../placement/objects/pod.ts';
import type { Toleration } from '../placement/patch/tolerations.ts';
import type { Settings } from '../placement/settings.ts';

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
  /** The key of the pod's subject after the write under way. */
  readonly expected?: string;
  /** The version that the last write led to, until the watch shows it. */
  readonly answered?: { readonly resourceVersion: string; readonly at: number };
  /** Writes that another writer undoes (`contention.ts`). */
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
