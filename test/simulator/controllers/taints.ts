import { at, type JsonObject, object, objects, text } from '../json.ts';
import { expression } from '../objects/selectors.ts';
import { nameOf } from '../objects/store.ts';

/** `v1helper.ToleratesTaint`. */
function tolerates(toleration: JsonObject, taint: JsonObject): boolean {
  const [effect, key] = [text(toleration.effect), text(toleration.key)];
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  return toleration.operator === 'Exists' || text(toleration.value) === text(taint.value);
}

/** The node's taints with one of the effects that the pod's spec does not tolerate. */
export function untolerated(spec: unknown, node: JsonObject, effects: readonly string[]): JsonObject[] {
  const tolerations = objects(at(spec, 'tolerations'));
  const taints = objects(at(node, 'spec', 'taints')).filter(({ effect }) => effects.includes(text(effect)));
  return taints.filter((taint) => !tolerations.some((toleration) => tolerates(toleration, taint)));
}

/** Node selector and required node affinity; the terms are alternatives, an empty one matches nothing. */
export function fitsAffinity(spec: unknown, node: JsonObject): boolean {
  const labels = object(at(node, 'metadata', 'labels'));
  const selector = Object.entries(object(at(spec, 'nodeSelector')));
  if (selector.some(([key, value]) => labels[key] !== value)) return false;
  const required = at(spec, 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution');
  if (required === undefined) return true;
  return objects(at(required, 'nodeSelectorTerms')).some((term) => matchesTerm(term, node));
}

export function matchesTerm(term: JsonObject, node: JsonObject): boolean {
  const [expressions, fields] = [objects(term.matchExpressions), objects(term.matchFields)];
  if (expressions.length + fields.length === 0) return false;
  const labels = object(at(node, 'metadata', 'labels'));
  const named = { 'metadata.name': nameOf(node) };
  return (
    expressions.every((requirement) => expression(requirement)(labels)) &&
    fields.every((requirement) => expression(requirement)(named))
  );
}
