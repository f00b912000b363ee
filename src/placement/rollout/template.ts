import type { JsonObject } from '../../kit/json.ts';
import { ARCHITECTURE_LABEL } from '../../names.ts';
import { claim, claimable, type DaemonSet, type RecordBasis, readRecord, writeRecord } from '../objects/daemonset.ts';
import { distinct, everAdded } from '../objects/past.ts';
import { isIn, withAffinity, withoutRequired } from '../patch/affinity.ts';
import { isSameToleration, lacking, type Toleration } from '../patch/tolerations.ts';

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
 * Decides a template's tolerations: its author's own and the wanted ones. Archaware's other tolerations are removed, except those
 * for another taint that nodes still have (`liveTaints`, as `key:effect`): without them the running daemon pods would leave
 * those nodes at once. `basis`: the basis of the wanted ones; default: as recorded. What the record
 * says of the rollout stays, if the basis says nothing of it. `requires`: the architectures for its node affinity, which goes where
 * its author says nothing about them; empty: none.
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
  const isNeeded = (toleration: JsonObject) => needed.some((entry) => isSameToleration(toleration, entry));
  const isOther = (toleration: JsonObject) =>
    !wanted.some(({ key, effect }) => toleration.key === key && toleration.effect === effect);
  const isLive = (toleration: JsonObject) =>
    isOther(toleration) && liveTaints.has(`${toleration.key}:${toleration.effect}`);
  const kept = [...ours].filter((toleration) => isNeeded(toleration) || isLive(toleration));
  const added = lacking(kept, needed);
  const gone = new Set([...ours].filter((toleration) => !kept.includes(toleration)));
  const tolerations = [...present.filter((toleration) => !gone.has(toleration)), ...added];
  // What the template still has is its author's.
  const past = everAdded(record).filter((entry) => !tolerations.some((one) => isSameToleration(one, entry)));
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
export function carriedTolerations({
  recorded,
  template,
  isListApplied = false,
}: Pick<DaemonSet, 'recorded' | 'template' | 'isListApplied'>): readonly Toleration[] {
  const present = template.tolerations ?? [];
  return claimable(readRecord(recorded), isListApplied).filter((entry) =>
    present.some((toleration) => isSameToleration(toleration, entry)),
  );
}

/**
 * Decides a template without archaware's tolerations, node affinity and record. `lost`: tolerations of archaware that no record lists.
 */
export function withoutOurs(
  {
    recorded,
    template,
    affinity: present,
    isListApplied = false,
  }: Pick<DaemonSet, 'recorded' | 'template' | 'isListApplied' | 'affinity'>,
  lost: readonly Toleration[],
): TemplateDecision {
  const tolerated = template.tolerations ?? [];
  const record = readRecord(recorded);
  const ours = claim(tolerated, distinct([...claimable(record, isListApplied), ...lost]));
  if (ours.size === 0 && recorded === undefined) return { kind: 'unchanged' };
  const tolerations = tolerated.filter((toleration) => !ours.has(toleration));
  const affinity = withoutRequired(present, record.requires);
  return {
    kind: 'set',
    tolerations,
    affinity,
    recorded: undefined,
    rolls: ours.size > 0 || !isSame(affinity, present),
  };
}

function isSame(one: JsonObject | undefined, other: JsonObject | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
