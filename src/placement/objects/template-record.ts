import { isObject, isSame, type JsonObject, parseJson, stringAt } from '../../kit/json.ts';
import { isLabelKey } from '../../kit/label-syntax.ts';
import { isArchitecture } from '../../kit/platform.ts';
import { hasOurForm, taintText } from '../nodes/managed.ts';
import { readTaint } from '../nodes/node.ts';
import type { Toleration } from '../patch/tolerations.ts';

/** What a record was decided on. */
export type RecordBasis = {
  /** None: it was a guess. */
  readonly images: readonly string[];
  /** What `evidenceKey` returned for the subject (subject.ts); empty for a guess. */
  readonly subject: string;
  /** What became of the last rollout that archaware began (see {@link rolloutOf}); absent: nothing is known. */
  readonly rollout?: string | undefined;
};

/** The parsed annotation. */
export type TemplateRecord = {
  /** Archaware's tolerations in the template. */
  readonly tolerations: readonly Toleration[];
  /** Those that archaware added earlier and that the template no longer has. `kubectl rollout undo` may bring them back. */
  readonly past: readonly Toleration[];
  /** The architectures of the node affinity that archaware added to the template. */
  readonly requires: readonly string[];
  /** The basis of the decision; undefined if the record does not name its images. */
  readonly basis: RecordBasis | undefined;
};

/** Parses the annotation that lists archaware's tolerations. Invalid entries are left out. */
export function readRecord(annotation: string | undefined): TemplateRecord {
  const parsed = annotation === undefined ? undefined : parseJson(annotation);
  if (!isObject(parsed)) return { tolerations: readTolerations(parsed), past: [], requires: [], basis: undefined };
  const { images, tolerations } = parsed;
  const subject = stringAt(parsed, 'subject') ?? '';
  const basis = Array.isArray(images)
    ? { images: images.filter((image) => typeof image === 'string'), subject, ...rolloutIn(parsed) }
    : undefined;
  const requires = (stringAt(parsed, 'requires') ?? '').split(',').filter(isArchitecture);
  return { tolerations: readTolerations(tolerations), past: readPast(parsed), requires, basis };
}

function rolloutIn(record: JsonObject): Pick<RecordBasis, 'rollout'> {
  const rollout = stringAt(record, 'rollout');
  return rollout === undefined ? {} : { rollout };
}

/** The basis of a guess. It matches no images, so that they are looked up again. */
export const GUESSED: RecordBasis = { images: [], subject: '' };

/**
 * Returns the annotation's text; undefined if there is nothing to record. The admission policies of the manifests search it for
 * each toleration's JSON, and check the order of the fields. What the template no longer has is text, so that no policy restores it.
 */
export function writeRecord(
  tolerations: readonly JsonObject[],
  past: readonly Toleration[],
  basis: RecordBasis | undefined,
  requires: readonly string[] = [],
): string | undefined {
  const isEmpty = tolerations.length === 0 && past.length === 0 && requires.length === 0;
  if (isEmpty && !keepsRecord(basis?.rollout)) return undefined;
  if (basis === undefined && past.length === 0 && requires.length === 0) return JSON.stringify(tolerations);
  const { images, subject, rollout } = basis ?? GUESSED;
  // Fields that are undefined are left out.
  return JSON.stringify({
    images,
    // Without braces, which the admission policies read as entries of the record.
    past: past.length > 0 ? past.map(taintText) : undefined,
    subject,
    requires: requires.join() || undefined,
    rollout: rollout || undefined,
    tolerations,
  });
}

/** Returns the tolerations of a record that are archaware's if a template has them. A list that was applied is its author's word. */
export function claimable(
  { tolerations, past }: Pick<TemplateRecord, 'tolerations' | 'past'>,
  isApplied: boolean,
): readonly Toleration[] {
  return isApplied ? tolerations : everAdded({ tolerations, past });
}

function readTolerations(list: unknown): Toleration[] {
  if (!Array.isArray(list)) return [];
  return list.slice(0, MOST_RECORDED).flatMap((entry: unknown) => {
    if (!isObject(entry)) return [];
    const { key, value, effect } = readTaint(entry);
    // A person who may write only the metadata cannot make archaware remove what archaware never adds.
    return key && value && effect && hasOurForm({ key, value, effect })
      ? [{ key, operator: 'Equal' as const, value, effect }]
      : [];
  });
}

/** Returns the present tolerations that the record lists, one per entry: a second equal toleration belongs to the author. */
export function claim(present: readonly JsonObject[], recorded: readonly Toleration[]): ReadonlySet<JsonObject> {
  const unclaimed = [...recorded];
  const keys = new Set<unknown>(recorded.map(({ key }) => key));
  const ours = present.filter((toleration) => {
    if (!keys.has(toleration.key)) return false;
    const index = unclaimed.findIndex((entry) => isSame(toleration, entry));
    return index >= 0 && unclaimed.splice(index, 1).length > 0;
  });
  return new Set(ours);
}

/*
 * The record of a template also names what archaware added earlier: an older revision of the template still has it, and
 * `kubectl rollout undo` brings it back. Without the record, it would then count as the author's.
 */

/** More than archaware ever writes. Anybody can write the annotation, and each entry is compared with each toleration. */
const MOST_RECORDED = 64;

/** Reads the field `past` of a record: `key=value:effect`. Entries that do not have archaware's form are left out. */
function readPast({ past }: JsonObject): readonly Toleration[] {
  if (!Array.isArray(past)) return [];
  return past.slice(-MOST_RECORDED).flatMap((text: unknown) => {
    const parts = typeof text === 'string' ? /^([^=:]+)=([^=:]+):([A-Za-z]+)$/.exec(text) : null;
    const [, key = '', value = '', effect = ''] = parts ?? [];
    const isOurs = isLabelKey(key) && hasOurForm({ key, value, effect });
    return isOurs ? [{ key, operator: 'Equal' as const, value, effect }] : [];
  });
}

/** Returns all that archaware has added to a template: what it no longer has first. Of very many, the latest. */
export function everAdded(record: Pick<TemplateRecord, 'tolerations' | 'past'>): readonly Toleration[] {
  return distinct([...record.past, ...record.tolerations]).slice(-MOST_RECORDED);
}

/** Returns the tolerations without repetitions. */
export function distinct(tolerations: readonly Toleration[]): readonly Toleration[] {
  return [...new Map(tolerations.map((toleration) => [taintText(toleration), toleration])).values()];
}

/*
 * What the record of a template says of the last rollout that archaware began. It survives the process: a new leader knows which
 * rollouts are archaware's, and does not begin one again that was taken back. The word is followed by the generation that the write
 * led to; with any other generation, the author has changed the DaemonSet since, and the entry means nothing.
 */

/** Returns the entry for a rollout that archaware waits for: the DaemonSet had rolled out before. */
export function awaited(generation: number): string {
  return `awaited ${generation}`;
}

/** Returns the entry for a change that archaware has taken back. */
export function takenBack(generation: number): string {
  return `back ${generation}`;
}

/** Returns a record with another entry for the rollout; undefined: none. A record of a version before 0.2 has no room for one. */
export function withRollout(recorded: string | undefined, rollout: string | undefined): string | undefined {
  const record = recorded === undefined ? undefined : parseJson(recorded);
  if (!isObject(record)) return recorded;
  const { rollout: _, tolerations, ...rest } = record;
  // A field that is undefined is left out. The policies of the manifests expect this order.
  return JSON.stringify({ ...rest, rollout, tolerations });
}

/** Whether a record is kept although it lists no toleration. */
export function keepsRecord(rollout: string | undefined): boolean {
  return rollout?.startsWith('back ') === true;
}

/** Returns what the entry says of a DaemonSet with this generation. */
export function rolloutOf(rollout: string | undefined, generation: number): 'awaited' | 'taken-back' | undefined {
  if (rollout === awaited(generation)) return 'awaited';
  return rollout === takenBack(generation) ? 'taken-back' : undefined;
}
