import { type JsonObject, listAt, objectAt, stringAt } from '../../src/kit/json.ts';
import { PREFERRED_TERMS, REQUIRED, type Requirement } from '../../src/placement/patch/affinity.ts';

/** Short names of the labels in tests. */
const SHORT: Readonly<Record<string, string>> = {
  arch: 'kubernetes.io/arch',
  'old-arch': 'beta.kubernetes.io/arch',
  os: 'kubernetes.io/os',
  'old-os': 'beta.kubernetes.io/os',
};

/** `zone In a,b` or `gpu Exists` as a requirement of a node's label. */
export function expression(text: string): JsonObject {
  const [name = '', operator = '', values] = text.split(' ');
  const key = SHORT[name] ?? name;
  return { key, operator, ...(values === undefined ? {} : { values: values.split(',') }) };
}

/** `arch In amd64` as a requirement in archaware's form. */
export function requirement(text: string): Requirement {
  const [name = '', , values = ''] = text.split(' ');
  return { key: SHORT[name] ?? name, operator: 'In', values: values.split(',') };
}

/** A term of these expressions; an empty one for none. */
export function term(...texts: string[]): JsonObject {
  return texts.length === 0 ? {} : { matchExpressions: texts.map(expression) };
}

/** `spec.affinity` that requires one of these terms. */
export function requires(...terms: readonly unknown[]): JsonObject {
  return { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: terms } } };
}

/** `arm64=75` as a preferred term; any other text as an expression of weight 1. */
export function preference(text: string): JsonObject {
  const [name = '', weight] = text.split('=');
  if (weight === undefined) return { weight: 1, preference: term(text) };
  return { weight: Number(weight), preference: { matchExpressions: [expression(`arch In ${name}`)] } };
}

/** `spec.affinity` that prefers these. */
export function prefers(...texts: string[]): JsonObject {
  return { nodeAffinity: { [PREFERRED_TERMS]: texts.map(preference) } };
}

/**
 * A spec's node affinity in one line: `zone In a & arch In amd64 | {}; prefers arch In arm64 (75)`; empty where it has none.
 */
export function shown(spec: JsonObject): string {
  const node = objectAt(objectAt(spec, 'affinity'), 'nodeAffinity');
  const terms = listAt(objectAt(node, REQUIRED), 'nodeSelectorTerms')?.map(termText).join(' | ');
  const preferred = listAt(node, PREFERRED_TERMS)?.map(
    (entry) => `${termText(objectAt(entry, 'preference'))} (${String(entry.weight)})`,
  );
  const told = preferred === undefined ? undefined : `prefers ${preferred.join(', ')}`;
  return [terms, told].filter((text) => text !== undefined).join('; ');
}

function termText(entry: JsonObject): string {
  const texts = ['matchExpressions', 'matchFields'].flatMap((field) =>
    (listAt(entry, field) ?? []).map(expressionText),
  );
  return texts.join(' & ') || '{}';
}

function expressionText(entry: JsonObject): string {
  const key = stringAt(entry, 'key') ?? '';
  const short = Object.entries(SHORT).find(([, long]) => long === key)?.[0] ?? key;
  const values = Array.isArray(entry.values) ? ` ${entry.values.join(',')}` : '';
  return `${short} ${stringAt(entry, 'operator')}${values}`;
}
