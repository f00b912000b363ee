/** Label selectors in the text form of the Kubernetes API ("Labels and Selectors"): `a=b,c!=d,e in (x,y),f,!g`. */

type SelectorRequirement = {
  readonly key: string;
  readonly operator: 'in' | 'notin' | 'exists' | 'absent';
  readonly values: readonly string[];
};

/** A parsed selector; an empty one matches everything. */
export type Selector = readonly SelectorRequirement[];

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

function parseRequirement(part: string): SelectorRequirement {
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

/** The rules for names and values of labels follow the API server (apimachinery's `IsQualifiedName`, `IsValidLabelValue`). */

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const DOMAIN = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const MAX_DOMAIN = 253;

/** Whether a text is valid as the name in a label key: the part after the `/`, or the whole key. */
export function isLabelName(text: string): boolean {
  return NAME.test(text);
}

/** Whether a text is valid as the prefix of a label key: the part before the `/`. */
export function isLabelNamespace(text: string): boolean {
  return text.length <= MAX_DOMAIN && DOMAIN.test(text);
}

/** Whether a text is a valid label key: `name` or `domain/name`. */
export function isLabelKey(text: string): boolean {
  const slash = text.indexOf('/');
  return slash < 0 ? isLabelName(text) : isLabelNamespace(text.slice(0, slash)) && isLabelName(text.slice(slash + 1));
}

/** Whether a text is a valid label value: empty, or of the form of a name. */
export function isLabelValue(text: string): boolean {
  return text === '' || isLabelName(text);
}

/** Whether a key is in the domains `kubernetes.io` or `k8s.io`, or below them. archaware sets no such labels. */
export function isReservedKey(key: string): boolean {
  return /^([^/]+\.)?(kubernetes|k8s)\.io\//.test(key);
}
