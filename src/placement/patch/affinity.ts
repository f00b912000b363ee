import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { ARCHITECTURE_LABEL, OLD_ARCHITECTURE_LABEL, OLD_OS_LABEL, OS_LABEL } from '../../names.ts';
import type { Preference } from '../preference.ts';

/** A requirement of a node's label as we write it (core/v1 `NodeSelectorRequirement`). */
export type Requirement = { readonly key: string; readonly operator: 'In'; readonly values: readonly string[] };

/** One that was added: to which of the required terms; without that: in a list that is ours as a whole. */
export type AddedRequirement = Requirement & { readonly term?: number };

/** What node affinity is to say of a pod, where its author does not. */
export type AffinityIntent = {
  readonly required: readonly Requirement[];
  readonly preferred: readonly Preference[];
};

/** The parts of a pod's spec that say on which nodes it may run, as the API server sent them. */
export type Placed = { readonly affinity?: unknown; readonly nodeSelector?: unknown };

export const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
export const PREFERRED_TERMS = 'preferredDuringSchedulingIgnoredDuringExecution';

/** Other keys under which a label may be asked for. */
const ALIASES: Readonly<Record<string, string>> = {
  [ARCHITECTURE_LABEL]: OLD_ARCHITECTURE_LABEL,
  [OS_LABEL]: OLD_OS_LABEL,
};

/**
 * `spec.affinity` with what is to be added to it: each requirement in every required term that does not speak of its
 * label, the preferences unless the pod prefers architectures itself. Undefined where nothing is added. What a gated
 * pod's affinity may become is less than what a new one's may: expressions are appended, terms neither added to others nor
 * filled where they are empty (`ValidatePodUpdate`); an empty term matches no node, and stays.
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

/** Those of the requirements that {@link withAffinity} added to a spec. */
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

/** A preference as a term of `preferredDuringSchedulingIgnoredDuringExecution`. */
export function preferredTerm({ architecture, weight }: Preference): JsonObject {
  return {
    weight,
    preference: { matchExpressions: [{ key: ARCHITECTURE_LABEL, operator: 'In', values: [architecture] }] },
  };
}

/** Those of which the pod's node selector says nothing. */
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

function namesOf(key: string): string[] {
  const alias = ALIASES[key];
  return alias === undefined ? [key] : [key, alias];
}
