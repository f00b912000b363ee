import type { Operation } from '../../kit/json-patch.ts';
import { FIELD_MANAGER, TOLERATIONS_ANNOTATION, WROTE_ANNOTATION } from '../../names.ts';
import type { DaemonSet } from '../objects/daemonset.ts';

/*
 * For server-side apply, a list of tolerations has one owner, and a JSON Patch makes the patcher that one. Every later apply of the
 * template's author would conflict. The API server computes `managedFields` from what a request changes, so a request that changes
 * the list cannot give it back; the next one can, and changes nothing else.
 */

type Owned = Pick<DaemonSet, 'uid' | 'entry'>;

/** What archaware's entry owns after the list was given back: the record, and the name that outlives it. */
const KEPT = {
  'f:metadata': { 'f:annotations': { [`f:${TOLERATIONS_ANNOTATION}`]: {}, [`f:${WROTE_ANNOTATION}`]: {} } },
};

/** Returns the patch after which archaware owns nothing of a DaemonSet's spec. Empty if that is so already. */
export function giveBackPatch({ uid, entry }: Owned): Operation[] {
  if (entry?.ownsSpec !== true) return [];
  const path = `/metadata/managedFields/${entry.index}`;
  return [...isOurs(uid, path), { op: 'replace', path: `${path}/fieldsV1`, value: KEPT }];
}

/** Returns the patch after which archaware owns nothing of a DaemonSet. Empty if that is so already. */
export function disownPatch({ uid, entry }: Owned): Operation[] {
  if (entry === undefined) return [];
  const path = `/metadata/managedFields/${entry.index}`;
  return [...isOurs(uid, path), { op: 'remove', path }];
}

/** The tests that fail if the list was changed meanwhile and another entry has this place. */
function isOurs(uid: string, path: string): Operation[] {
  return [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: `${path}/manager`, value: FIELD_MANAGER },
    { op: 'test', path: `${path}/operation`, value: 'Update' },
  ];
}
