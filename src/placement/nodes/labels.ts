import type { Condition, LabelRules } from './label-rules.ts';

/** The value of every label that archaware sets. */
export const LABEL_VALUE = 'true';
/** A label with this value counts as absent. */
const UNSET = 'false';

/** A label of a rule that somebody else set. archaware does not change it. */
export type LabelConflict = { readonly label: string; readonly value: string };

/** The change to the labels of a node. */
export type LabelDecision = {
  readonly added: readonly string[];
  /** Labels of archaware, still `true`, to remove. */
  readonly removed: readonly string[];
  /** The labels that are archaware's from then on, sorted. */
  readonly recorded: readonly string[];
  readonly conflicts: readonly LabelConflict[];
};

/**
 * Decides the labels of a node by the rules. A label is archaware's if it is recorded and still has the value that archaware
 * set; any other value under the label of a rule belongs to somebody else. A rule reads the results of the rules before it, not
 * the node's present labels, so one decision is enough.
 */
export function decideLabels(
  present: Readonly<Record<string, string>>,
  recorded: readonly string[],
  { rules, refused }: LabelRules,
): LabelDecision {
  const ours = new Set(recorded.filter((label) => ownValue(present, label) === LABEL_VALUE));
  const decided = new Map<string, string | undefined>();
  for (const label of ours) decided.set(label, refused.has(label) ? LABEL_VALUE : undefined);
  const valueAt = (key: string) => (decided.has(key) ? decided.get(key) : ownValue(present, key));
  const conflicts: LabelConflict[] = [];
  for (const { label, conditions } of rules) {
    const value = ownValue(present, label);
    if (value !== undefined && !ours.has(label)) conflicts.push({ label, value });
    else decided.set(label, conditions.some((condition) => holds(condition, valueAt)) ? LABEL_VALUE : undefined);
  }
  const kept = [...decided].flatMap(([label, value]) => (value === undefined ? [] : label)).sort();
  const removed = [...ours].filter((label) => decided.get(label) === undefined).sort();
  return { added: kept.filter((label) => !ours.has(label)), removed, recorded: kept, conflicts };
}

/** Returns the text for a conflict. */
export function labelConflictNote({ label, value }: LabelConflict): string {
  return (
    `label ${label}=${value} was set by another writer, so archaware does not change it; ` +
    'remove it from the node to let the rule decide'
  );
}

/** Whether a condition is met. `key!=value` and `!key` are met if there is no such label, as in a label selector. */
function holds({ key, operator, value }: Condition, valueAt: (key: string) => string | undefined): boolean {
  const found = valueAt(key);
  switch (operator) {
    case 'has':
      return found !== undefined && found !== UNSET;
    case 'has-not':
      return found === undefined || found === UNSET;
    case 'is':
      return found === value;
    case 'is-not':
      return found !== value;
    default:
      return operator satisfies never;
  }
}

/** Reads an own property: a label may be named `constructor`. */
function ownValue(labels: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
