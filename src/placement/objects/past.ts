import type { JsonObject } from '../../kit/json.ts';
import { isLabelKey } from '../nodes/label-names.ts';
import { hasOurForm, taintText } from '../nodes/managed.ts';
import type { Toleration } from '../patch/tolerations.ts';

/*
 * The record of a template also names what archaware added earlier: an older revision of the template still has it, and
 * `kubectl rollout undo` brings it back. Without the record, it would then count as the author's.
 */

/** More than archaware ever writes. Anybody can write the annotation, and each entry is compared with each toleration. */
export const MOST_RECORDED = 64;

/** Reads the field `past` of a record: `key=value:effect`. Entries that do not have archaware's form are left out. */
export function readPast({ past }: JsonObject): readonly Toleration[] {
  if (!Array.isArray(past)) return [];
  return past.slice(-MOST_RECORDED).flatMap((text: unknown) => {
    const parts = typeof text === 'string' ? /^([^=:]+)=([^=:]+):([A-Za-z]+)$/.exec(text) : null;
    const [, key = '', value = '', effect = ''] = parts ?? [];
    const isOurs = isLabelKey(key) && hasOurForm({ key, value, effect });
    return isOurs ? [{ key, operator: 'Equal' as const, value, effect }] : [];
  });
}

/** Returns an entry of the field `past`. It has no braces, which the admission policies read as entries of the record. */
export function pastText(toleration: Toleration): string {
  return taintText(toleration);
}

/** Returns all that archaware has added to a template: what it no longer has first. Of very many, the latest. */
export function everAdded({
  tolerations,
  past,
}: {
  readonly tolerations: readonly Toleration[];
  readonly past: readonly Toleration[];
}): readonly Toleration[] {
  return distinct([...past, ...tolerations]).slice(-MOST_RECORDED);
}

/** Returns the tolerations without repetitions. */
export function distinct(tolerations: readonly Toleration[]): readonly Toleration[] {
  return [...new Map(tolerations.map((toleration) => [pastText(toleration), toleration])).values()];
}
