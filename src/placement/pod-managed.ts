import { ARCHITECTURE_GATE, MANAGED_ANNOTATION } from '../names.ts';
import { narrowedTerms, PREFERRED_TERMS, preferredTerm, REQUIRED, type Requirement } from './affinity.ts';
import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from './json.ts';
import type { Placing } from './placing.ts';
import type { Preference } from './preference.ts';
import { isSameToleration, lacking, type Toleration } from './tolerations.ts';

/** What admission gave to a pod, as its annotation `archaware.dev/managed` records it. */
export type PodManaged = {
  readonly tolerations: readonly Toleration[];
  readonly required: readonly Requirement[];
  /** Indices of the required terms that got them; absent: the terms are ours as a whole. */
  readonly terms?: readonly number[];
  readonly preferred: readonly Preference[];
};

const ANNOTATION_PATH = ['metadata', 'annotations'] as const;

/** What of a placing was added to a pod: the annotation for it, or undefined for nothing. */
export function recordOf(before: JsonObject, after: JsonObject, placing: Placing): string | undefined {
  const [old, now] = [objectAt(before, 'spec'), objectAt(after, 'spec')];
  const tolerations = lacking(listAt(old, 'tolerations') ?? [], placing.tolerations);
  const { required = [], preferred = [] } = placing.affinity ?? {};
  const terms = narrowedTerms(old, now);
  const added = {
    tolerations,
    required: terms?.length === 0 ? [] : required,
    ...(terms === undefined ? {} : { terms }),
    preferred: affinityOf(old)[PREFERRED_TERMS] === affinityOf(now)[PREFERRED_TERMS] ? [] : preferred,
  };
  const isNothing = added.tolerations.length + added.required.length + added.preferred.length === 0;
  return isNothing ? undefined : JSON.stringify(added);
}

/** Reads the annotation of a pod; undefined where there is none, or none that we could have written. */
export function readPodManaged(pod: JsonObject): PodManaged | undefined {
  const text = stringAt(objectAt(objectAt(pod, 'metadata'), 'annotations'), MANAGED_ANNOTATION);
  const parsed = text === undefined ? undefined : parseJson(text);
  if (!isObject(parsed)) return undefined;
  const terms = parsed.terms;
  return {
    tolerations: (listAt(parsed, 'tolerations') ?? []).flatMap(readToleration),
    required: (listAt(parsed, 'required') ?? []).flatMap(readRequirement),
    ...(Array.isArray(terms) ? { terms: terms.filter((index): index is number => Number.isInteger(index)) } : {}),
    preferred: (listAt(parsed, 'preferred') ?? []).flatMap(({ architecture, weight }) =>
      typeof architecture === 'string' && typeof weight === 'number' ? { architecture, weight } : [],
    ),
  };
}

function readToleration(entry: JsonObject): Toleration | [] {
  const { key, value, effect } = entry;
  if (typeof key !== 'string' || typeof value !== 'string' || typeof effect !== 'string') return [];
  return { key, operator: 'Equal', value, effect };
}

function readRequirement({ key, values }: JsonObject): Requirement | [] {
  if (typeof key !== 'string' || !Array.isArray(values)) return [];
  return { key, operator: 'In', values: values.filter((value) => typeof value === 'string') };
}

/**
 * The pod as its author wants it: without what the annotation says is ours, the annotation, and our gate. Another webhook
 * may have changed it since; what is no longer as we wrote it is not ours any more.
 */
export function withoutOurs(pod: JsonObject): JsonObject {
  const gates = listAt(objectAt(pod, 'spec'), 'schedulingGates') ?? [];
  const isGated = gates.some(({ name }) => name === ARCHITECTURE_GATE);
  const ungated = isGated
    ? put(pod, ['spec', 'schedulingGates'], nonEmpty(gates.filter(({ name }) => name !== ARCHITECTURE_GATE)))
    : pod;
  const managed = readPodManaged(pod);
  if (managed === undefined) return ungated;
  const annotations = { ...objectAt(objectAt(pod, 'metadata'), 'annotations') };
  delete annotations[MANAGED_ANNOTATION];
  const unmarked = put(ungated, ANNOTATION_PATH, Object.keys(annotations).length > 0 ? annotations : undefined);
  const tolerations = listAt(objectAt(pod, 'spec'), 'tolerations') ?? [];
  const own = withoutLast(tolerations, managed.tolerations, isSameToleration);
  const untolerating =
    own.length === tolerations.length ? unmarked : put(unmarked, ['spec', 'tolerations'], nonEmpty(own));
  return withoutOurAffinity(untolerating, managed);
}

function withoutOurAffinity(pod: JsonObject, managed: PodManaged): JsonObject {
  const affinity = objectAt(objectAt(pod, 'spec'), 'affinity');
  const node = { ...objectAt(affinity, 'nodeAffinity') };
  const required = widened(node[REQUIRED], managed);
  const preferred = listAt(node, PREFERRED_TERMS) ?? [];
  const terms = managed.preferred.map(preferredTerm);
  const unpreferred = withoutLast(preferred, terms, isSame);
  if (required === node[REQUIRED] && unpreferred.length === preferred.length) return pod;
  set(node, REQUIRED, required);
  if (unpreferred.length < preferred.length) set(node, PREFERRED_TERMS, nonEmpty(unpreferred));
  const rest = { ...affinity };
  set(rest, 'nodeAffinity', nonEmptyObject(node));
  return put(pod, ['spec', 'affinity'], nonEmptyObject(rest));
}

/** The required terms without our requirements; undefined where nothing but ours was in them. */
function widened(required: unknown, { required: ours, terms: indices }: PodManaged): unknown {
  if (ours.length === 0 || !isObject(required) || !Array.isArray(required.nodeSelectorTerms)) return required;
  const terms: readonly unknown[] = required.nodeSelectorTerms;
  const after = terms.map((term, index) => {
    if (!isObject(term) || (indices !== undefined && !indices.includes(index))) return term;
    const expressions = listAt(term, 'matchExpressions') ?? [];
    const own = withoutLast(expressions, ours, isSame);
    return own.length === expressions.length ? term : put(term, ['matchExpressions'], nonEmpty(own));
  });
  if (after.every((term, index) => term === terms[index])) return required;
  // An empty term matches no node, but none at all lets every node in.
  const isOurs = indices === undefined && after.every((term) => isObject(term) && Object.keys(term).length === 0);
  return isOurs ? undefined : { ...required, nodeSelectorTerms: after };
}

/** The items without the last one that is the same as each of ours: what we add comes last. */
function withoutLast<T>(
  items: readonly JsonObject[],
  ours: readonly T[],
  same: (item: JsonObject, own: T) => boolean,
): JsonObject[] {
  const left = [...items];
  for (const own of ours) {
    const index = left.findLastIndex((item) => same(item, own));
    if (index >= 0) left.splice(index, 1);
  }
  return left;
}

function isSame(one: JsonObject, other: JsonObject): boolean {
  const names = Object.keys(other);
  return (
    Object.keys(one).length === names.length &&
    names.every((name) => {
      const [a, b] = [one[name], other[name]];
      if (isObject(a) && isObject(b)) return isSame(a, b);
      return a === b || JSON.stringify(a) === JSON.stringify(b);
    })
  );
}

function affinityOf(spec: JsonObject): JsonObject {
  return objectAt(objectAt(spec, 'affinity'), 'nodeAffinity');
}

/** A copy of the object with another value at a path; undefined takes the field away. */
export function put(object: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [name, ...rest] = path;
  if (name === undefined) return object;
  const copy: Record<string, unknown> = { ...object };
  set(copy, name, rest.length === 0 ? value : put(objectAt(object, name), rest, value));
  return copy;
}

function set(object: Record<string, unknown>, name: string, value: unknown): void {
  if (value === undefined) delete object[name];
  else object[name] = value;
}

function nonEmpty<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length === 0 ? undefined : items;
}

function nonEmptyObject(object: JsonObject): JsonObject | undefined {
  return Object.keys(object).length === 0 ? undefined : object;
}
