import { isObject, isSame, type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { ARCHITECTURE_LABEL, OLD_ARCHITECTURE_LABEL, OLD_OS_LABEL, OS_LABEL } from '../../names.ts';
import type { RecordedRequirement } from '../objects/pod-record.ts';

/** The weight, 1 to 100, that the scheduler gives to nodes of an architecture. */
export type Preference = { readonly architecture: string; readonly weight: number };

/** A requirement on a node's label, in the form that archaware writes (core/v1 `NodeSelectorRequirement`). */
export type Requirement = { readonly key: string; readonly operator: 'In'; readonly values: readonly string[] };

/** Returns the requirement that a label has one of these values. */
export function isIn(key: string, values: readonly string[]): Requirement {
  return { key, operator: 'In', values };
}

/** The node affinity that a pod should have, where its author does not say otherwise. */
export type AffinityIntent = {
  readonly required: readonly Requirement[];
  readonly preferred: readonly Preference[];
};

/** The parts of a pod's spec that select nodes, as the API server sent them. */
export type Placed = {
  readonly affinity?: unknown;
  readonly nodeSelector?: unknown;
  /** The requirements that archaware added earlier, by the pod's record. Present ones do not count as the author's. */
  readonly ours?: readonly RecordedRequirement[];
};

export const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
export const PREFERRED_TERMS = 'preferredDuringSchedulingIgnoredDuringExecution';

/** The older keys of labels, which pods may still use. */
const ALIASES: Readonly<Record<string, string>> = {
  [ARCHITECTURE_LABEL]: OLD_ARCHITECTURE_LABEL,
  [OS_LABEL]: OLD_OS_LABEL,
};

/**
 * Returns `spec.affinity` with the intent added; undefined if there is nothing to add. Each requirement goes into every required
 * term that does not mention its label, or only in a requirement of archaware that allows more: an image was added since. The preferences are added unless the pod prefers architectures itself. The API server
 * allows fewer changes to a gated pod than to a new one (`ValidatePodUpdate`): expressions are appended, terms are not added to
 * existing ones, and empty terms are not filled. An empty term matches no node, and stays empty.
 */
export function withAffinity(spec: Placed, intent: AffinityIntent): JsonObject | undefined {
  const before = isObject(spec.affinity) ? objectAt(spec.affinity, 'nodeAffinity') : {};
  const required = narrowed(before[REQUIRED], asked(spec.nodeSelector, intent.required), spec.ours ?? []);
  const preferred = preferring(before[PREFERRED_TERMS], intent.preferred);
  if (required === undefined && preferred === undefined) return undefined;
  return {
    ...(isObject(spec.affinity) ? spec.affinity : {}),
    nodeAffinity: {
      ...before,
      ...(required === undefined ? {} : { [REQUIRED]: required }),
      ...(preferred === undefined ? {} : { [PREFERRED_TERMS]: preferred }),
    },
  };
}

/**
 * Returns `spec.affinity` without the requirement that archaware added to a template: `kubernetes.io/arch In` exactly these architectures.
 * A term that is empty without it was archaware's.
 */
export function withoutRequired(affinity: unknown, architectures: readonly string[]): JsonObject | undefined {
  if (!isObject(affinity) || architectures.length === 0) return isObject(affinity) ? affinity : undefined;
  const before = objectAt(affinity, 'nodeAffinity');
  const terms = listAt(objectAt(before, REQUIRED), 'nodeSelectorTerms') ?? [];
  const isOurs = ({ key, operator, values }: JsonObject) =>
    key === ARCHITECTURE_LABEL && operator === 'In' && Array.isArray(values) && values.join() === architectures.join();
  const restored = terms.flatMap((term) => {
    const expressions = listAt(term, 'matchExpressions') ?? [];
    const theirs = expressions.filter((expression) => !isOurs(expression));
    if (theirs.length === expressions.length) return term;
    const { matchExpressions: _, ...fields } = term;
    if (theirs.length > 0) return { ...fields, matchExpressions: theirs };
    return Object.keys(fields).length > 0 ? fields : [];
  });
  if (restored.length === terms.length && restored.every((term, index) => term === terms[index])) return affinity;
  const { [REQUIRED]: __, ...others } = before;
  const nodeAffinity = restored.length > 0 ? { ...before, [REQUIRED]: { nodeSelectorTerms: restored } } : others;
  const { nodeAffinity: ___, ...rest } = affinity;
  const after = Object.keys(nodeAffinity).length > 0 ? { ...affinity, nodeAffinity } : rest;
  return Object.keys(after).length > 0 ? after : undefined;
}

/** Returns the requirements that {@link withAffinity} added to a spec. */
export function addedTo(before: Placed, after: Placed, required: readonly Requirement[]): Requirement[] {
  const old = new Set(expressionsOf(before));
  const added = new Set(expressionsOf(after).filter((expression) => !old.has(expression)));
  return required.filter((requirement) => added.has(requirement));
}

/** Whether a required term has this requirement. */
export function hasRequirement(spec: Placed, recorded: RecordedRequirement): boolean {
  return expressionsOf(spec).some((expression) => isRecorded(expression, recorded));
}

function expressionsOf({ affinity }: Placed): JsonObject[] {
  const required = objectAt(objectAt(isObject(affinity) ? affinity : {}, 'nodeAffinity'), REQUIRED);
  return (listAt(required, 'nodeSelectorTerms') ?? []).flatMap((term) => listAt(term, 'matchExpressions') ?? []);
}

function isRecorded({ key, operator, values }: JsonObject, recorded: RecordedRequirement): boolean {
  // Item by item: a pod's author chooses how many terms and how long a record there are, and nothing is written as text for each pair.
  return key === recorded.key && operator === 'In' && Array.isArray(values) && isSame(values, recorded.values);
}

/** Returns the requirements whose labels the pod's node selector does not mention. */
function asked(nodeSelector: unknown, requirements: readonly Requirement[]): readonly Requirement[] {
  if (!isObject(nodeSelector)) return requirements;
  return requirements.filter(({ key }) => !namesOf(key).some((name) => Object.hasOwn(nodeSelector, name)));
}

function narrowed(
  required: unknown,
  requirements: readonly Requirement[],
  ours: readonly RecordedRequirement[],
): JsonObject | undefined {
  if (requirements.length === 0) return undefined;
  if (!isObject(required)) return { nodeSelectorTerms: [{ matchExpressions: requirements }] };
  const { nodeSelectorTerms: terms } = required;
  if (!Array.isArray(terms)) return undefined;
  const after = terms.map((term: unknown) => (isObject(term) ? narrowTerm(term, requirements, ours) : term));
  return after.some((term, index) => term !== terms[index]) ? { ...required, nodeSelectorTerms: after } : undefined;
}

function narrowTerm(
  term: JsonObject,
  requirements: readonly Requirement[],
  ours: readonly RecordedRequirement[],
): JsonObject {
  const expressions = listAt(term, 'matchExpressions') ?? [];
  if (expressions.length + (listAt(term, 'matchFields')?.length ?? 0) === 0) return term;
  const missing = requirements.filter(({ key, values }) => {
    const speaking = expressions.filter((expression) => speaksOf(expression, key));
    const recorded = ours.filter((own) => speaking.some((expression) => isRecorded(expression, own)));
    const isTheirs = speaking.some((expression) => !recorded.some((own) => isRecorded(expression, own)));
    return !isTheirs && !recorded.some((own) => own.values.every((value) => values.includes(value)));
  });
  if (missing.length === 0) return term;
  return { ...term, matchExpressions: [...expressions, ...missing] };
}

function preferring(terms: unknown, preferences: readonly Preference[]): JsonObject[] | undefined {
  const present = Array.isArray(terms) ? terms.filter(isObject) : [];
  const isTheirs = present.some((term) =>
    (listAt(objectAt(term, 'preference'), 'matchExpressions') ?? []).some((expression) =>
      speaksOf(expression, ARCHITECTURE_LABEL),
    ),
  );
  if (isTheirs || preferences.length === 0) return undefined;
  return [
    ...present,
    ...preferences.map(({ architecture, weight }) => {
      return { weight, preference: { matchExpressions: [isIn(ARCHITECTURE_LABEL, [architecture])] } };
    }),
  ];
}

function speaksOf(expression: JsonObject, key: string): boolean {
  return namesOf(key).includes(stringAt(expression, 'key') ?? '');
}

/** Returns the labels by which the author of a pod speaks of the same thing: the label itself, and its older name. */
function namesOf(key: string): readonly string[] {
  const alias = ALIASES[key];
  return alias === undefined ? [key] : [key, alias];
}
