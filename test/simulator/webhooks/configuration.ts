import { at, type JsonObject, list, objects, text } from '../json.ts';
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

/**
 * What the real server refuses, and one thing that it does not: a CEL expression of `matchConditions` that the
 * embedded cluster does not know.
 */
export function validateWebhooks(configuration: JsonObject): Cause[] {
  const seen = new Set<string>();
  return objects(configuration.webhooks).flatMap((webhook, index) => {
    const field = `webhooks[${index}]`;
    const name = text(webhook.name);
    const causes: Cause[] = [];
    if (seen.has(name)) causes.push(cause.duplicate(`${field}.name`, name));
    seen.add(name);
    if (name.split('.').length < 3) {
      causes.push(
        cause.invalid(`${field}.name`, name, 'should be a domain with at least three segments separated by dots'),
      );
    }
    if (!list(webhook.admissionReviewVersions).includes('v1')) {
      causes.push(cause.required(`${field}.admissionReviewVersions`, 'must specify one of v1, v1beta1'));
    }
    if (!['None', 'NoneOnDryRun'].includes(text(webhook.sideEffects))) {
      causes.push(cause.required(`${field}.sideEffects`, 'must specify one of None, NoneOnDryRun'));
    }
    const seconds = Number(webhook.timeoutSeconds);
    if (seconds < 1 || seconds > 30) {
      const message = 'the timeout value must be between 1 and 30 seconds';
      causes.push(cause.invalid(`${field}.timeoutSeconds`, seconds, message));
    }
    return [...causes, ...validateClient(webhook, field), ...validateConditions(webhook, field)];
  });
}

function validateClient(webhook: JsonObject, field: string): Cause[] {
  const [url, service] = [at(webhook, 'clientConfig', 'url'), at(webhook, 'clientConfig', 'service')];
  if ((url === undefined) === (service === undefined)) {
    return [cause.required(`${field}.clientConfig`, 'exactly one of url or service is required')];
  }
  if (url === undefined || text(url).startsWith('https://')) return [];
  const message = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
  return [cause.invalid(`${field}.clientConfig.url`, text(url).split(':')[0], message)];
}

function validateConditions(webhook: JsonObject, field: string): Cause[] {
  return objects(webhook.matchConditions).flatMap(({ expression }, index) => {
    if (knownCondition(text(expression))) return [];
    const message = 'the embedded cluster interprets no CEL: add the expression to match-conditions.ts';
    return [cause.invalid(`${field}.matchConditions[${index}].expression`, expression, message)];
  });
}
