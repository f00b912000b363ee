/** Label selectors in the text form of the Kubernetes API ("Labels and Selectors"): `a=b,c!=d,e in (x,y),f,!g`. */

type Requirement = {
  readonly key: string;
  readonly operator: 'in' | 'notin' | 'exists' | 'absent';
  readonly values: readonly string[];
};

/** A parsed selector; an empty one matches everything. */
export type Selector = readonly Requirement[];

const KEY = '(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?';
const VALUE = '(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?';
const WHOLE_VALUE = new RegExp(`^${VALUE}$`);
const EXISTENCE = new RegExp(`^(!?)\\s*(${KEY})$`);
const EQUALITY = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*(${VALUE})$`);
const MEMBERSHIP = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);

/** Parses a selector. Throws an Error whose message names the part that cannot be parsed. */
export function parseSelector(text: string): Selector {
  if (text.trim() === '') return [];
  return splitOutsideParentheses(text).map((part) => parseRequirement(part.trim()));
}

/** Whether an object's labels meet every requirement; `!=` and `notin` also match if the label is absent. */
export function matchesSelector(selector: Selector, labels: Readonly<Record<string, string>>): boolean {
  return selector.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    switch (operator) {
      case 'in':
        return value !== undefined && values.includes(value);
      case 'notin':
        return value === undefined || !values.includes(value);
      case 'exists':
        return value !== undefined;
      case 'absent':
        return value === undefined;
      default:
        return operator satisfies never;
    }
  });
}

function parseRequirement(part: string): Requirement {
  const membership = MEMBERSHIP.exec(part);
  if (membership) {
    const [, key = '', operator = '', list = ''] = membership;
    const values = list.split(',').map((value) => value.trim());
    if (values.every((value) => WHOLE_VALUE.test(value))) {
      return { key, operator: operator === 'in' ? 'in' : 'notin', values };
    }
  }
  const equality = EQUALITY.exec(part);
  if (equality) {
    const [, key = '', operator, value = ''] = equality;
    return { key, operator: operator === '!=' ? 'notin' : 'in', values: [value] };
  }
  const existence = EXISTENCE.exec(part);
  if (existence) {
    const [, negation, key = ''] = existence;
    return { key, operator: negation === '!' ? 'absent' : 'exists', values: [] };
  }
  throw new Error(`cannot read "${part}"; expected key, !key, key=value, key!=value, key in (a,b) or key notin (a,b)`);
}

function splitOutsideParentheses(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '(') depth++;
    else if (text[i] === ')') depth--;
    else if (text[i] === ',' && depth === 0) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
