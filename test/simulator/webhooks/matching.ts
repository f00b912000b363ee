import { isObject, type JsonObject, list, objects, text } from '../json.ts';
import { NAMESPACES, type Resource } from '../objects/resources.ts';
import { objectSelector } from '../objects/selectors.ts';
import type { Store } from '../objects/store.ts';
import { knownCondition } from './match-conditions.ts';

/** Webhook configurations are never sent to a webhook. Otherwise a broken one could not be repaired. */
const NEVER_SENT: ReadonlySet<string> = new Set(['mutatingwebhookconfigurations', 'validatingwebhookconfigurations']);

/** Whether a webhook wants the request of an AdmissionReview: its rules, selectors and conditions. */
export function wants(store: Store, webhook: JsonObject, resource: Resource, request: JsonObject): boolean {
  if (NEVER_SENT.has(resource.plural)) return false;
  const { operation, object, oldObject } = request;
  if (!objects(webhook.rules).some((rule) => covers(rule, resource, text(operation)))) return false;
  const namespace = resource.namespaced ? store.get(NAMESPACES, '', text(request.namespace)) : undefined;
  if (namespace && !objectSelector(webhook.namespaceSelector)(namespace)) return false;
  const isSelected = [object, oldObject].filter(isObject).some(objectSelector(webhook.objectSelector));
  const conditions = objects(webhook.matchConditions).map(({ expression }) => knownCondition(text(expression)));
  return isSelected && conditions.every((condition) => condition?.(request) ?? true);
}

function covers(rule: JsonObject, resource: Resource, operation: string): boolean {
  const has = (field: string, ...values: readonly string[]) =>
    ['*', ...values].some((value) => list(rule[field]).includes(value));
  const scope = resource.namespaced ? 'Namespaced' : 'Cluster';
  return (
    has('operations', operation) &&
    has('apiGroups', resource.group) &&
    has('apiVersions', resource.version) &&
    has('resources', resource.plural) &&
    ['*', scope].includes(text(rule.scope))
  );
}
