import { isLabelKey, isLabelValue } from '../../kit/label-syntax.ts';
import { printable } from '../../kit/printable.ts';

/** A line of a rule: a condition on one label of a node. */
export type Condition = {
  readonly key: string;
  readonly operator: 'has' | 'has-not' | 'is' | 'is-not';
  /** Empty for `has` and `has-not`. */
  readonly value: string;
  /** Counted from 1. */
  readonly line: number;
};

type LabelRule = { readonly label: string; readonly conditions: readonly Condition[] };

/** The rules of a directory. */
export type LabelRules = {
  /** In the order of their evaluation: a rule that reads the label of another rule comes after that rule. */
  readonly rules: readonly LabelRule[];
  /** Labels whose rules are invalid. Nodes that have them from archaware keep them; other nodes do not get them. */
  readonly refused: ReadonlySet<string>;
};

/** The file of a rule: its text, or why it cannot be read. */
export type RuleFile = { readonly label: string; readonly file: string } & (
  | { readonly text: string }
  | { readonly problem: string }
);

/** No rules: no label is set, and the labels that archaware set are removed. */
export const NO_RULES: LabelRules = { rules: [], refused: new Set() };

/** How many invalid lines of a file are reported one by one; the others are only counted. */
const MOST_NAMED = 5;
const SHOWN_BYTES = 120;

/** Parses the text of one rule: the valid conditions, and the problems of the other lines. Never throws. */
export function parseRule(text: string): {
  readonly conditions: readonly Condition[];
  readonly problems: readonly { readonly line: number; readonly problem: string }[];
} {
  const conditions: Condition[] = [];
  const problems: { line: number; problem: string }[] = [];
  for (const [index, whole] of text.split(/\r\n|\n|\r/).entries()) {
    // Label names and values contain no "#".
    const content = whole.replace(/#.*/s, '').trim();
    if (content === '') continue;
    const condition = parseLine(content);
    const line = index + 1;
    if (condition !== undefined) conditions.push({ ...condition, line });
    else {
      const got = printable(JSON.stringify(content.slice(0, SHOWN_BYTES)), SHOWN_BYTES);
      problems.push({
        line,
        problem: `got ${got}, expected the label of a node as key, key=value, key!=value or !key`,
      });
    }
  }
  return { conditions, problems };
}

function parseLine(text: string): Omit<Condition, 'line'> | undefined {
  if (text.startsWith('!')) return named({ key: text.slice(1), operator: 'has-not', value: '' });
  const at = text.search(/!?=/);
  if (at < 0) return named({ key: text, operator: 'has', value: '' });
  const operator = text[at] === '!' ? 'is-not' : 'is';
  return named({ key: text.slice(0, at), operator, value: text.slice(at + (operator === 'is' ? 1 : 2)) });
}

function named(condition: Omit<Condition, 'line'>): Omit<Condition, 'line'> | undefined {
  return isLabelKey(condition.key) && isLabelValue(condition.value) ? condition : undefined;
}

/**
 * Reads the rules from files, one file per label. A file with an invalid line is refused as a whole. So is a rule whose label depends on
 * itself, directly or through other rules: it would have no result, or more than one. `problems`: one line each, beginning with the file.
 */
export function readRules(files: readonly RuleFile[]): {
  readonly rules: LabelRules;
  readonly problems: readonly string[];
} {
  const problems: string[] = [];
  const good: (LabelRule & { readonly file: string })[] = [];
  const refused = new Set<string>();
  for (const given of files) {
    const { label, file } = given;
    if ('problem' in given) {
      problems.push(`${file}: ${given.problem}`);
      refused.add(label);
      continue;
    }
    const parsed = parseRule(given.text);
    if (parsed.problems.length === 0) {
      good.push({ label, file, conditions: parsed.conditions });
      continue;
    }
    refused.add(label);
    for (const { line, problem } of parsed.problems.slice(0, MOST_NAMED)) problems.push(`${file}:${line}: ${problem}`);
    const more = parsed.problems.length - MOST_NAMED;
    if (more > 0) problems.push(`${file}: and ${more} more line(s) like that`);
  }

  const byLabel = new Map(good.map((rule) => [rule.label, rule]));
  const ordered = new Set<LabelRule>(inOrder(good));
  const straight = good.filter((rule) => {
    const back = ordered.has(rule) ? undefined : wayBack(rule, byLabel);
    if (back === undefined) return true;
    refused.add(rule.label);
    problems.push(
      `${rule.file}:${back.line}: ${back.key} is itself decided by ${rule.label}; expected no rule that depends on itself`,
    );
    return false;
  });
  return { rules: { rules: inOrder(straight), refused }, problems };
}

/** Returns the condition through which a rule depends on itself. */
function wayBack({ label, conditions }: LabelRule, byLabel: ReadonlyMap<string, LabelRule>): Condition | undefined {
  const seen = new Set<string>();
  const leadsBack = (key: string): boolean => {
    const open = [key];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next === label) return true;
      const rule = seen.has(next) ? undefined : byLabel.get(next);
      seen.add(next);
      if (rule !== undefined) for (const condition of rule.conditions) open.push(condition.key);
    }
    return false;
  };
  return conditions.find(({ key }) => leadsBack(key));
}

/**
 * Sorts the rules so that each comes after the rules whose labels it reads. Rules in a cycle, and rules that depend on one, are left out.
 */
function inOrder(rules: readonly LabelRule[]): LabelRule[] {
  const labels = new Set(rules.map(({ label }) => label));
  const lacks = new Map<LabelRule, Set<string>>();
  const followers = new Map<string, LabelRule[]>();
  for (const rule of rules) {
    const needs = new Set(rule.conditions.map(({ key }) => key).filter((key) => labels.has(key)));
    lacks.set(rule, needs);
    for (const key of needs) {
      const known = followers.get(key);
      if (known === undefined) followers.set(key, [rule]);
      else known.push(rule);
    }
  }
  const ordered = rules.filter((rule) => lacks.get(rule)?.size === 0);
  // The loop appends to the list that it walks.
  for (const { label } of ordered) {
    for (const follower of followers.get(label) ?? []) {
      const left = lacks.get(follower);
      left?.delete(label);
      if (left?.size === 0) ordered.push(follower);
    }
  }
  return ordered;
}
