import { isSame, type JsonObject } from '../../kit/json.ts';
import { isReservedKey } from '../../kit/label-syntax.ts';
import { ARCHITECTURES, isArchitecture } from '../../kit/platform.ts';
import { ARCHITECTURE_LABEL } from '../../names.ts';
import { isTaintedFor } from '../nodes/cut-off.ts';
import { type Node, taintKind } from '../nodes/node.ts';
import type { DaemonSet } from '../objects/daemonset.ts';
import {
  claim,
  claimable,
  distinct,
  everAdded,
  GUESSED,
  type RecordBasis,
  readRecord,
  rolloutOf,
  takenBack,
  writeRecord,
} from '../objects/template-record.ts';
import { isIn, withAffinity, withoutRequired } from '../patch/affinity.ts';
import { asOurs, lacking, type Toleration, tolerationsFor } from '../patch/tolerations.ts';
import { few } from '../reasons.ts';
import type { Settings } from '../settings.ts';

/** The change to a template: its whole list of tolerations and its affinity, and the annotation (undefined: none). */
export type TemplateDecision =
  | { readonly kind: 'unchanged' }
  | {
      readonly kind: 'set';
      readonly tolerations: readonly JsonObject[];
      readonly affinity: JsonObject | undefined;
      readonly recorded: string | undefined;
      /** Whether the template changes, which makes the DaemonSet roll. If not, only the annotation changes. */
      readonly rolls: boolean;
    };

/**
 * Decides a template's tolerations: its author's own and the wanted ones. Archaware's other tolerations are removed, except those for
 * another taint that nodes still have (`liveTaints`, as `key:effect`): without them the running daemon pods would leave those nodes at
 * once. `basis`: the basis of the wanted ones; default: as recorded. What the record says of the rollout stays, if the basis says nothing
 * of it. `requires`: the architectures for its node affinity, which goes where its author says nothing about them; empty: none.
 */
export function decideTemplate(
  daemonSet: Pick<DaemonSet, 'recorded' | 'template' | 'isListApplied' | 'affinity' | 'selects'>,
  wanted: readonly Toleration[],
  liveTaints: ReadonlySet<string>,
  basis?: RecordBasis,
  requires: readonly string[] = [],
): TemplateDecision {
  const present = daemonSet.template.tolerations ?? [];
  const record = readRecord(daemonSet.recorded);
  const ours = claim(present, claimable(record, daemonSet.isListApplied === true));
  const theirs = present.filter((toleration) => !ours.has(toleration));
  const needed = lacking(theirs, wanted);
  const isNeeded = (toleration: JsonObject) => needed.some((entry) => isSame(toleration, entry));
  const isOther = (toleration: JsonObject) =>
    !wanted.some(({ key, effect }) => toleration.key === key && toleration.effect === effect);
  const isLive = (toleration: JsonObject) =>
    isOther(toleration) && liveTaints.has(`${toleration.key}:${toleration.effect}`);
  const kept = [...ours].filter((toleration) => isNeeded(toleration) || isLive(toleration));
  const added = lacking(kept, needed);
  const gone = new Set([...ours].filter((toleration) => !kept.includes(toleration)));
  const tolerations = [...present.filter((toleration) => !gone.has(toleration)), ...added];
  // What the template still has is its author's.
  const past = everAdded(record).filter((entry) => !tolerations.some((one) => isSame(one, entry)));
  const own = { affinity: withoutRequired(daemonSet.affinity, record.requires), ...daemonSet.selects };
  const narrowed =
    requires.length > 0
      ? withAffinity(own, { required: [isIn(ARCHITECTURE_LABEL, requires)], preferred: [] })
      : undefined;
  const affinity = narrowed ?? own.affinity;
  const rolls = added.length > 0 || tolerations.length !== present.length || !isSame(affinity, daemonSet.affinity);
  const annotation = writeRecord(
    [...kept, ...added],
    past,
    basis === undefined ? record.basis : { rollout: record.basis?.rollout, ...basis },
    narrowed === undefined ? [] : requires,
  );
  if (!rolls && annotation === daemonSet.recorded) return { kind: 'unchanged' };
  return { kind: 'set', tolerations, affinity, recorded: annotation, rolls };
}

/** Returns the tolerations of a template that archaware added, now or earlier. */
export function carriedTolerations({ recorded, template, isListApplied = false }: DaemonSet): readonly Toleration[] {
  const present = template.tolerations ?? [];
  return claimable(readRecord(recorded), isListApplied).filter((entry) =>
    present.some((toleration) => isSame(toleration, entry)),
  );
}

/** Decides a template without archaware's tolerations, node affinity and record. `lost`: tolerations of archaware that no record lists. */
export function withoutOurs(
  daemonSet: Pick<DaemonSet, 'recorded' | 'template' | 'isListApplied' | 'affinity'>,
  lost: readonly Toleration[],
): TemplateDecision {
  const { recorded, template, affinity: present, isListApplied = false } = daemonSet;
  const tolerated = template.tolerations ?? [];
  const record = readRecord(recorded);
  const ours = claim(tolerated, distinct([...claimable(record, isListApplied), ...lost]));
  if (ours.size === 0 && recorded === undefined) return { kind: 'unchanged' };
  const tolerations = tolerated.filter((toleration) => !ours.has(toleration));
  const affinity = withoutRequired(present, record.requires);
  const rolls = ours.size > 0 || !isSame(affinity, present);
  return { kind: 'set', tolerations, affinity, recorded: undefined, rolls };
}

type SeenTemplate = Pick<DaemonSet, 'recorded' | 'template' | 'entry'>;
type TaintForm = Pick<Settings['taints'], 'key' | 'effect'>;

/** Returns the tolerations of a template that have archaware's form, although no record lists them. */
export function unrecordedTolerations({ recorded, template }: SeenTemplate, taint: TaintForm): readonly Toleration[] {
  // Keys of these domains belong to Kubernetes and to providers: their users write such tolerations themselves.
  if (recorded !== undefined || isReservedKey(taint.key)) return [];
  const found = (template.tolerations ?? []).flatMap((toleration) => asOurs(toleration, taint) ?? []);
  return [...new Map(found.filter(({ value }) => isArchitecture(value)).map((one) => [one.value, one])).values()];
}

/**
 * Returns archaware's tolerations in a template whose record is lost: those of archaware's form, if `metadata.managedFields` shows
 * that archaware wrote to the DaemonSet. An author may write the same form, so the form alone proves nothing.
 */
export function lostTolerations(daemonSet: SeenTemplate, taint: TaintForm): readonly Toleration[] {
  return daemonSet.entry === undefined ? [] : unrecordedTolerations(daemonSet, taint);
}

/** How many DaemonSets a note names. */
const MOST_NAMED = 5;

/**
 * Returns the note about DaemonSets that have tolerations of archaware's form without a record, and that archaware never wrote to
 * as far as can be seen; undefined if there are none.
 */
export function unrecordedNote(
  daemonSets: Iterable<SeenTemplate & Pick<DaemonSet, 'namespace' | 'name'>>,
  { key, effect }: TaintForm,
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
  taint: TaintForm,
): Extract<TemplateDecision, { kind: 'set' }> {
  const others = ARCHITECTURES.filter((name) => !lost.some(({ value }) => value === name));
  const recorded = writeRecord(lost, tolerationsFor(taint, others), NOT_KNOWN);
  return { kind: 'set', tolerations: template.tolerations ?? [], affinity, recorded, rolls: false };
}

/** Whether archaware has taken its change of the template back, and nobody has changed the DaemonSet since. */
export function isTakenBack({ recorded, generation }: Pick<DaemonSet, 'recorded' | 'generation'>): boolean {
  return rolloutOf(readRecord(recorded).basis?.rollout, generation) === 'taken-back';
}

/** Returns the note about DaemonSets whose change was taken back; undefined if there are none. */
export function takenBackNote(
  daemonSets: Iterable<Pick<DaemonSet, 'namespace' | 'name' | 'recorded' | 'generation'>>,
): string | undefined {
  const names = [...daemonSets].flatMap((daemonSet) =>
    isTakenBack(daemonSet) ? `${daemonSet.namespace}/${daemonSet.name}` : [],
  );
  if (names.length === 0) return undefined;
  const what = names.length === 1 ? '1 DaemonSet stays' : `${names.length} DaemonSets stay`;
  return (
    `${what} without tolerations of archaware, which holds up others: the API server let no pod with them in, so run has taken ` +
    `them back (${few(names.sort())}); allow the tolerations, then run kubectl rollout restart (docs/alerts.md, "ArchawareRolloutStopped")`
  );
}

/**
 * Whether to take the change of a stopped rollout back. Nobody else has changed the DaemonSet since, else it would not be stopped. On
 * nodes that have the taint already its pods need the tolerations more than anything else.
 */
export function canTakeBack(daemonSet: DaemonSet, nodes: Iterable<Node>, taints: Settings['taints']): boolean {
  const { tolerations, requires } = readRecord(daemonSet.recorded);
  return tolerations.length + requires.length > 0 && !isTaintedFor(daemonSet, nodes, taints);
}

/** Returns the change that takes archaware's tolerations out of a template, and records that they were taken back. */
export function takeBack(
  daemonSet: DaemonSet,
  liveTaints: ReadonlySet<string>,
  taints: Settings['taints'],
): Extract<TemplateDecision, { kind: 'set' }> {
  const basis = readRecord(daemonSet.recorded).basis ?? GUESSED;
  const others = new Set([...liveTaints].filter((kind) => kind !== taintKind(taints)));
  const rollout = takenBack(daemonSet.generation + 1);
  const change = decideTemplate(daemonSet, [], others, { ...basis, rollout });
  if (change.kind === 'set') return change;
  const tolerations = daemonSet.template.tolerations ?? [];
  return { kind: 'set', tolerations, affinity: daemonSet.affinity, recorded: daemonSet.recorded, rolls: false };
}
