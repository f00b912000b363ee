import type { Condition, LabelRules } from './label-rules.ts';

/** The value of every label that we set. */
export const LABEL_VALUE = 'true';
/** The value with which a label says that the node does not have it. */
const UNSET = 'false';

/** A label that a rule decides and somebody else set: it stays as it is. */
export type LabelConflict = { readonly label: string; readonly value: string };

/** What is to become of the labels of a node. */
export type LabelDecision = {
  /** Absent labels that are to be `true`. */
  readonly added: readonly string[];
  /** Labels of ours, still `true`, that are to go. */
  readonly removed: readonly string[];
  /** What is ours from then on, sorted. */
  readonly recorded: readonly string[];
  readonly conflicts: readonly LabelConflict[];
};

/**
 * The labels of a node by the rules. Ours is what is recorded and still has the value that we set; whatever else there is
 * under the label of a rule is somebody else's. A rule sees what the rules before it decided, not what the node has of
 * that, so one decision settles it.
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
  return {
    added: kept.filter((label) => !ours.has(label)),
    removed: [...ours].filter((label) => decided.get(label) === undefined).sort(),
    recorded: kept,
    conflicts,
  };
}

/** What an operator reads of a conflict. */
export function labelConflictNote({ label, value }: LabelConflict): string {
  return (
    `label ${label}=${value} was set by somebody else and stays as it is, whatever its rule says; ` +
    'remove it from the node to have the rule decide'
  );
}

/** Whether a condition holds. `key!=value` and `!key` hold where there is no such label, as in a label selector. */
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

/** `constructor` is a name that a label may have. */
function ownValue(labels: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
