import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { ARCHITECTURE_LABEL, OLD_ARCHITECTURE_LABEL, OLD_OS_LABEL, OS_LABEL } from '../../names.ts';
import type { Preference } from '../preference.ts';

/** A requirement on a node's label, in the form that archaware writes (core/v1 `NodeSelectorRequirement`). */
export type Requirement = { readonly key: string; readonly operator: 'In'; readonly values: readonly string[] };

/**
 * A requirement that archaware added. `term`: the index of the author's term that it was added to; absent if the whole list is
 * archaware's.
 */
export type AddedRequirement = Requirement & { readonly term?: number };

/** The node affinity that a pod should have, where its author does not say otherwise. */
export type AffinityIntent = {
  readonly required: readonly Requirement[];
  readonly preferred: readonly Preference[];
};

/** The parts of a pod's spec that select nodes, as the API server sent them. */
export type Placed = { readonly affinity?: unknown; readonly nodeSelector?: unknown };

export const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
export const PREFERRED_TERMS = 'preferredDuringSchedulingIgnoredDuringExecution';

/** The older keys of labels, which pods may still use. */
const ALIASES: Readonly<Record<string, string>> = {
  [ARCHITECTURE_LABEL]: OLD_ARCHITECTURE_LABEL,
  [OS_LABEL]: OLD_OS_LABEL,
};

/**
 * Returns `spec.affinity` with the intent added; undefined if there is nothing to add. Each requirement goes into every required
 * term that does not mention its label. The preferences are added unless the pod prefers architectures itself. The API server
 * allows fewer changes to a gated pod than to a new one (`ValidatePodUpdate`): expressions are appended, terms are not added to
 * existing ones, and empty terms are not filled. An empty term matches no node, and stays empty.
 */
export function withAffinity(spec: Placed, intent: AffinityIntent): JsonObject | undefined {
  const before = isObject(spec.affinity) ? objectAt(spec.affinity, 'nodeAffinity') : {};
  const required = narrowed(before[REQUIRED], asked(spec.nodeSelector, intent.required));
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

/** Returns the requirements that {@link withAffinity} added to a spec. */
export function addedTo(before: Placed, after: Placed, required: readonly Requirement[]): AddedRequirement[] {
  const isOurs = termsOf(before) === undefined;
  return (termsOf(after) ?? []).flatMap((term, index) => {
    const expressions = (isObject(term) && listAt(term, 'matchExpressions')) || [];
    const added = required.filter((requirement) => expressions.includes(requirement));
    return isOurs ? added : added.map((requirement) => ({ term: index, ...requirement }));
  });
}

function termsOf({ affinity }: Placed): readonly unknown[] | undefined {
  const required = objectAt(objectAt(isObject(affinity) ? affinity : {}, 'nodeAffinity'), REQUIRED);
  return Array.isArray(required.nodeSelectorTerms) ? required.nodeSelectorTerms : undefined;
}

/** Returns a preference as a term of `preferredDuringSchedulingIgnoredDuringExecution`. */
export function preferredTerm({ architecture, weight }: Preference): JsonObject {
  return {
    weight,
    preference: { matchExpressions: [{ key: ARCHITECTURE_LABEL, operator: 'In', values: [architecture] }] },
  };
}

/** Returns the requirements whose labels the pod's node selector does not mention. */
function asked(nodeSelector: unknown, requirements: readonly Requirement[]): readonly Requirement[] {
  if (!isObject(nodeSelector)) return requirements;
  return requirements.filter(({ key }) => !namesOf(key).some((name) => Object.hasOwn(nodeSelector, name)));
}

function narrowed(required: unknown, requirements: readonly Requirement[]): JsonObject | undefined {
  if (requirements.length === 0) return undefined;
  if (!isObject(required)) return { nodeSelectorTerms: [{ matchExpressions: requirements }] };
  const { nodeSelectorTerms: terms } = required;
  if (!Array.isArray(terms)) return undefined;
  const after = terms.map((term: unknown) => (isObject(term) ? narrowTerm(term, requirements) : term));
  return after.some((term, index) => term !== terms[index]) ? { ...required, nodeSelectorTerms: after } : undefined;
}

function narrowTerm(term: JsonObject, requirements: readonly Requirement[]): JsonObject {
  const expressions = listAt(term, 'matchExpressions') ?? [];
  if (expressions.length + (listAt(term, 'matchFields')?.length ?? 0) === 0) return term;
  const missing = requirements.filter(({ key }) => !expressions.some((expression) => speaksOf(expression, key)));
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
  return [...present, ...preferences.map(preferredTerm)];
}

function speaksOf(expression: JsonObject, key: string): boolean {
  return namesOf(key).includes(stringAt(expression, 'key') ?? '');
}

/** Returns the labels by which the author of a pod speaks of the same thing: the label itself, and its older name. */
function namesOf(key: string): readonly string[] {
  const alias = ALIASES[key];
  return alias === undefined ? [key] : [key, alias];
}
