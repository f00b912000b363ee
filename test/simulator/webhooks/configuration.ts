import { type JsonObject, objects, text } from '../json.ts';
import { type Cause, cause } from '../objects/status.ts';
import { knownCondition } from './match-conditions.ts';

/** A MutatingWebhookConfiguration with what the server fills in. */
export function defaultWebhooks(configuration: JsonObject): JsonObject {
  const webhooks = objects(configuration.webhooks).map((webhook) => ({
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    timeoutSeconds: 10,
    reinvocationPolicy: 'Never',
    ...webhook,
    rules: objects(webhook.rules).map((rule) => ({ scope: '*', ...rule })),
  }));
  return { ...configuration, webhooks };
}

/** What the real server does not refuse: a CEL expression of `matchConditions` that the embedded cluster does not know. */
export function validateWebhooks(configuration: JsonObject): Cause[] {
  return objects(configuration.webhooks).flatMap((webhook, index) =>
    objects(webhook.matchConditions).flatMap(({ expression }, at) => {
      if (knownCondition(text(expression))) return [];
      const message = 'the embedded cluster interprets no CEL: add the expression to match-conditions.ts';
      return [cause.invalid(`webhooks[${index}].matchConditions[${at}].expression`, expression, message)];
    }),
  );
}
