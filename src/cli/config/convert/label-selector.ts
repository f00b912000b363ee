import { isObject, type JsonObject, stringAt } from '../../../kit/json.ts';
import { parseSelector } from '../../../kit/selector.ts';
import type { Draft } from './conversion.ts';

const OPERATORS = 'In, NotIn, Exists, DoesNotExist';

/**
 * Returns a LabelSelector of the Kubernetes API as the text that archaware's keys accept; empty if it is absent. A
 * malformed part is refused under `key` and left out.
 */
export function selectorText(selector: unknown, key: string, draft: Draft): string {
  if (selector === undefined || selector === null) return '';
  if (!isObject(selector)) {
    draft.refuse(key, selector, 'a label selector with matchLabels and matchExpressions');
    return '';
  }
  const { matchLabels, matchExpressions, ...others } = selector;
  for (const [name, value] of Object.entries(others)) draft.note(`${key}.${name}`, value, 'unknown');
  const parts = [...labelParts(matchLabels, key, draft), ...expressionParts(matchExpressions, key, draft)];
  return parts.join(',');
}

function labelParts(matchLabels: unknown, key: string, draft: Draft): string[] {
  if (matchLabels === undefined || matchLabels === null) return [];
  if (!isObject(matchLabels)) {
    draft.refuse(`${key}.matchLabels`, matchLabels, 'a map from labels to their values');
    return [];
  }
  return Object.entries(matchLabels).flatMap(([label, value]) => {
    const at = `${key}.matchLabels.${label}`;
    if (typeof value === 'string') return checked(`${label}=${value}`, at, value, draft);
    draft.refuse(at, value, 'the text of a label');
    return [];
  });
}

function expressionParts(matchExpressions: unknown, key: string, draft: Draft): string[] {
  if (matchExpressions === undefined || matchExpressions === null) return [];
  if (!Array.isArray(matchExpressions)) {
    draft.refuse(`${key}.matchExpressions`, matchExpressions, 'a list of {key, operator, values}');
    return [];
  }
  return matchExpressions.flatMap((expression: unknown, index) => {
    const at = `${key}.matchExpressions[${index}]`;
    if (isObject(expression)) return expressionPart(expression, at, draft);
    draft.refuse(at, expression, 'a map with key, operator and values');
    return [];
  });
}

function expressionPart(expression: JsonObject, at: string, draft: Draft): string[] {
  const label = stringAt(expression, 'key') ?? '';
  // Text that a selector would not read as just the name of a label.
  if (/[\s,()=!]/.test(label)) {
    draft.refuse(`${at}.key`, label, 'the name of a label');
    return [];
  }
  const operator = expression.operator;
  if (operator === 'Exists') return checked(label, at, expression, draft);
  if (operator === 'DoesNotExist') return checked(`!${label}`, at, expression, draft);
  if (operator !== 'In' && operator !== 'NotIn') {
    draft.refuse(`${at}.operator`, operator, `one of ${OPERATORS}`);
    return [];
  }
  const values: unknown = expression.values;
  if (!isListOfTexts(values) || values.length === 0) {
    draft.refuse(`${at}.values`, values, `a list of at least one text with operator: ${operator}`);
    return [];
  }
  const [only] = values;
  // Only `=` can express the empty value.
  if (values.length === 1) return checked(`${label}${operator === 'In' ? '=' : '!='}${only}`, at, expression, draft);
  return checked(`${label} ${operator === 'In' ? 'in' : 'notin'} (${values.join(',')})`, at, expression, draft);
}

function isListOfTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string' && !/[,()]/.test(item));
}

/**
 * Returns a part if archaware's parser reads it as exactly one requirement; otherwise refuses it and returns nothing.
 */
function checked(part: string, at: string, given: unknown, draft: Draft): string[] {
  try {
    if (parseSelector(part).length === 1) return [part];
  } catch {
    // Refused below, with the allowed form.
  }
  draft.refuse(at, given, 'a label with values as Kubernetes allows them');
  return [];
}
