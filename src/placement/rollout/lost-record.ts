import { ARCHITECTURES, isArchitecture } from '../../kit/platform.ts';
import { isReservedKey } from '../nodes/label-names.ts';
import { type DaemonSet, type RecordBasis, writeRecord } from '../objects/daemonset.ts';
import { asOurs, type Toleration, tolerationsFor } from '../patch/tolerations.ts';
import type { Settings } from '../settings.ts';
import type { TemplateDecision } from './template.ts';

type Seen = Pick<DaemonSet, 'recorded' | 'template' | 'entry'>;

/** Returns the tolerations of a template that have archaware's form, although no record lists them. */
export function unrecordedTolerations(
  { recorded, template }: Pick<Seen, 'recorded' | 'template'>,
  taint: Pick<Settings['taints'], 'key' | 'effect'>,
): readonly Toleration[] {
  // Keys of these domains belong to Kubernetes and to providers: their users write such tolerations themselves.
  if (recorded !== undefined || isReservedKey(taint.key)) return [];
  const found = (template.tolerations ?? []).flatMap((toleration) => asOurs(toleration, taint) ?? []);
  return [...new Map(found.filter(({ value }) => isArchitecture(value)).map((one) => [one.value, one])).values()];
}

/**
 * Returns archaware's tolerations in a template whose record is lost: those of archaware's form, if `metadata.managedFields` shows
 * that archaware wrote to the DaemonSet. An author may write the same form, so the form alone proves nothing.
 */
export function lostTolerations(
  daemonSet: Seen,
  taint: Pick<Settings['taints'], 'key' | 'effect'>,
): readonly Toleration[] {
  return daemonSet.entry === undefined ? [] : unrecordedTolerations(daemonSet, taint);
}

/** How many DaemonSets a note names. */
const MOST_NAMED = 5;

/**
 * Returns the note about DaemonSets that have tolerations of archaware's form without a record, and that archaware never wrote to
 * as far as can be seen; undefined if there are none.
 */
export function unrecordedNote(
  daemonSets: Iterable<Seen & Pick<DaemonSet, 'namespace' | 'name'>>,
  { key, effect }: Pick<Settings['taints'], 'key' | 'effect'>,
): string | undefined {
  const names = [...daemonSets].flatMap((daemonSet) => {
    const isAuthors = daemonSet.entry === undefined && unrecordedTolerations(daemonSet, { key, effect }).length > 0;
    return isAuthors ? `${daemonSet.namespace}/${daemonSet.name}` : [];
  });
  if (names.length === 0) return undefined;
  const more = names.length > MOST_NAMED ? `, and ${names.length - MOST_NAMED} more` : '';
  return (
    `${names.length} DaemonSet(s) tolerate ${key}:${effect} for single architectures without a record of archaware ` +
    `(${names.sort().slice(0, MOST_NAMED).join(', ')}${more}): these tolerations count as their authors', and run leaves them alone`
  );
}

/**
 * The basis of a record that was lost. It matches no images, whose names have no spaces, so that they are looked up again. It is no
 * guess either, which another guess could add to.
 */
const NOT_KNOWN: RecordBasis = { images: ['not known'], subject: '' };

/**
 * Returns the change that records them again. It rolls nothing. What archaware had added before is lost too, so any architecture
 * that an undo brings back will count as archaware's.
 */
export function foundAgain(
  { template, affinity }: Pick<DaemonSet, 'template' | 'affinity'>,
  lost: readonly Toleration[],
  taint: Pick<Settings['taints'], 'key' | 'effect'>,
): Extract<TemplateDecision, { kind: 'set' }> {
  const others = ARCHITECTURES.filter((name) => !lost.some(({ value }) => value === name));
  return {
    kind: 'set',
    tolerations: template.tolerations ?? [],
    affinity,
    recorded: writeRecord(lost, tolerationsFor(taint, others), NOT_KNOWN),
    rolls: false,
  };
}
