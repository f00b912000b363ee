import { IGNORE_LABEL, TOLERATIONS_ANNOTATION } from '../../../src/names.ts';
import { assign, at, equal, isObject, type JsonObject, list, object, objects, text } from '../json.ts';
import { defaultWebhooks, validateWebhooks } from '../webhooks/configuration.ts';
import { defaultPodSpec, validatePod, validatePodSpec, validatePodUpdate } from './pod-rules.ts';
import type { Resource } from './resources.ts';
import { type Cause, cause } from './status.ts';

/** The fields that the server fills in, by kind; what is there stays. */
export function withDefaults({ plural }: Resource, item: JsonObject): JsonObject {
  const spec = object(item.spec);
  switch (plural) {
    case 'pods':
      return { ...item, spec: { enableServiceLinks: true, ...defaultPodSpec(spec) } };
    case 'deployments':
      return withTemplate(item, { replicas: 1, progressDeadlineSeconds: 600, revisionHistoryLimit: 10 });
    case 'replicasets':
      return withTemplate(item, { replicas: 1 });
    case 'statefulsets':
      return withTemplate(item, { replicas: 1, podManagementPolicy: 'OrderedReady', serviceName: '' });
    case 'daemonsets': {
      const { type = 'RollingUpdate', rollingUpdate } = object(spec.updateStrategy);
      const rolling = { rollingUpdate: { maxSurge: 0, maxUnavailable: 1, ...object(rollingUpdate) } };
      const updateStrategy = { type, ...(type === 'RollingUpdate' ? rolling : {}) };
      return withTemplate(assign(item, ['spec', 'updateStrategy'], updateStrategy), { revisionHistoryLimit: 10 });
    }
    case 'jobs': {
      const { name, uid } = object(item.metadata);
      const labels = {
        'batch.kubernetes.io/controller-uid': uid,
        'batch.kubernetes.io/job-name': name,
        'job-name': name,
      };
      if (isObject(spec.selector)) return withTemplate(item, { parallelism: 1, completions: 1, backoffLimit: 6 });
      const own = object(at(spec, 'template', 'metadata', 'labels'));
      const labelled = assign(item, ['spec', 'template', 'metadata', 'labels'], { ...own, ...labels });
      const selector = { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } };
      return withTemplate(labelled, { parallelism: 1, completions: 1, backoffLimit: 6, selector });
    }
    case 'namespaces': {
      const { name, labels } = object(item.metadata);
      const own = { 'kubernetes.io/metadata.name': name };
      const named = assign(item, ['metadata', 'labels'], { ...object(labels), ...own });
      if (isObject(item.status)) return named;
      return { ...named, spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } };
    }
    case 'secrets':
      return { type: 'Opaque', ...item };
    case 'mutatingwebhookconfigurations':
      return defaultWebhooks(item);
    default:
      return item;
  }
}

function withTemplate(item: JsonObject, defaults: JsonObject): JsonObject {
  const spec = { ...defaults, ...object(item.spec) };
  const template = object(spec.template);
  return { ...item, spec: { ...spec, template: { ...template, spec: defaultPodSpec(object(template.spec)) } } };
}

const MICRO_TIMES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  leases: [
    ['spec', 'acquireTime'],
    ['spec', 'renewTime'],
  ],
  events: [['eventTime'], ['series', 'lastObservedTime']],
};

/** What cannot even be decoded: metav1.MicroTime takes six digits after the second and nothing else. */
export function undecodable({ plural }: Resource, item: JsonObject): string | undefined {
  for (const path of MICRO_TIMES[plural] ?? []) {
    const time = at(item, ...path);
    if (time === undefined || time === null) continue;
    if (typeof time === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/.test(time)) continue;
    return `parsing time ${JSON.stringify(JSON.stringify(time))} as "2006-01-02T15:04:05.000000Z07:00": cannot parse`;
  }
  return undefined;
}

/** The field errors of an object about to be stored. */
export function validate(resource: Resource, next: JsonObject, previous: JsonObject | undefined): Cause[] {
  return [...validateMetadata(next), ...validateKind(resource, next, previous)];
}

const NAME = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

function validateMetadata(item: JsonObject): Cause[] {
  const labels = Object.entries(object(at(item, 'metadata', 'labels')));
  return labels.flatMap(([key, value]) => {
    const name = key.slice(key.lastIndexOf('/') + 1);
    if (name === '' || !NAME.test(name))
      return [cause.invalid('metadata.labels', key, 'name part must consist of alphanumeric characters')];
    if (typeof value === 'string' && NAME.test(value)) return [];
    const rule =
      text(value).length > 63
        ? 'must be no more than 63 bytes'
        : 'a valid label must be an empty string or consist of alphanumeric characters';
    return [cause.invalid('metadata.labels', value, rule)];
  });
}

function validateKind(resource: Resource, next: JsonObject, previous: JsonObject | undefined): Cause[] {
  switch (resource.plural) {
    case 'pods':
      return previous ? [...validatePodUpdate(next, previous), ...validatePod(next)] : validatePod(next);
    case 'nodes':
      return validateNode(next);
    case 'leases':
      return validateLease(next);
    case 'events':
      return validateEvent(next, previous);
    case 'jobs':
      if (previous && !equal(at(next, 'spec', 'template'), at(previous, 'spec', 'template'))) {
        return [cause.invalid('spec.template', {}, 'field is immutable')];
      }
      return validateWorkload(next, previous);
    case 'deployments':
    case 'replicasets':
    case 'statefulsets':
    case 'daemonsets':
      return validateWorkload(next, previous);
    case 'mutatingwebhookconfigurations':
      return validateWebhooks(next);
    default:
      return [];
  }
}

function validateWorkload(next: JsonObject, previous: JsonObject | undefined): Cause[] {
  const [selector, labels] = [at(next, 'spec', 'selector'), object(at(next, 'spec', 'template', 'metadata', 'labels'))];
  const causes = validatePodSpec(object(at(next, 'spec', 'template', 'spec')), 'spec.template.spec');
  if (!isObject(selector)) causes.push(cause.required('spec.selector'));
  const wanted = Object.entries(object(at(selector, 'matchLabels')));
  if (wanted.some(([key, value]) => labels[key] !== value)) {
    causes.push(cause.invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
  if (previous && !equal(selector, at(previous, 'spec', 'selector'))) {
    causes.push(cause.invalid('spec.selector', selector, 'field is immutable'));
  }
  return causes;
}

function validateNode(node: JsonObject): Cause[] {
  const seen = new Set<string>();
  return objects(at(node, 'spec', 'taints')).flatMap((taint, index) => {
    const field = `spec.taints[${index}]`;
    const identity = `${text(taint.key)}:${text(taint.effect)}`;
    const causes: Cause[] = [];
    if (text(taint.key) === '') causes.push(cause.invalid(`${field}.key`, '', 'name part must be non-empty'));
    if (!NAME.test(text(taint.value)))
      causes.push(cause.invalid(`${field}.value`, taint.value, 'a valid label must be'));
    if (text(taint.effect) === '') causes.push(cause.required(`${field}.effect`));
    if (seen.has(identity)) causes.push(cause.duplicate(field, taint));
    seen.add(identity);
    return causes;
  });
}

function validateLease(lease: JsonObject): Cause[] {
  const seconds = at(lease, 'spec', 'leaseDurationSeconds');
  if (typeof seconds !== 'number' || seconds > 0) return [];
  return [cause.invalid('spec.leaseDurationSeconds', seconds, 'must be greater than 0')];
}

const EVENT_FIXED = 'note regarding reason type eventTime action related reportingController reportingInstance'.split(
  ' ',
);

function validateEvent(event: JsonObject, previous: JsonObject | undefined): Cause[] {
  const causes: Cause[] = [];
  const namespace = text(at(event, 'metadata', 'namespace'));
  const regarding = text(at(event, 'regarding', 'namespace'));
  if (regarding === '' ? namespace !== 'default' && namespace !== 'kube-system' : regarding !== namespace) {
    causes.push(cause.invalid('involvedObject.namespace', regarding, 'does not match event.namespace'));
  }
  for (const field of ['eventTime', 'reportingController', 'reportingInstance', 'action', 'reason']) {
    if (text(event[field]) === '') causes.push(cause.required(field));
    else if (field !== 'eventTime' && text(event[field]).length > 128) {
      causes.push(cause.invalid(field, event[field], 'can have at most 128 characters'));
    }
  }
  if (event.type !== 'Normal' && event.type !== 'Warning') {
    causes.push(cause.invalid('type', text(event.type), 'has invalid value: '));
  }
  if (Buffer.byteLength(text(event.note)) > 1024)
    causes.push(cause.invalid('message', '', 'can have at most 1024 bytes'));
  if (isObject(event.series)) {
    const { count, lastObservedTime } = event.series;
    if (typeof count !== 'number' || count < 2)
      causes.push(cause.invalid('series.count', count, 'should be at least 2'));
    if (lastObservedTime === undefined) causes.push(cause.required('series.lastObservedTime'));
  }
  for (const field of previous ? EVENT_FIXED : []) {
    if (equal(event[field], previous?.[field])) continue;
    causes.push(cause.invalid(field === 'note' ? 'message' : field, event[field], 'field is immutable'));
  }
  return causes;
}

/**
 * The MutatingAdmissionPolicy of archaware's manifest, by hand: an update of a DaemonSet by anybody else keeps the
 * tolerations that its annotation lists, and the annotation, unless the DaemonSet has the label to ignore it.
 */
export function guardDaemonSet(next: JsonObject, previous: JsonObject): JsonObject {
  const path = ['spec', 'template', 'spec', 'tolerations'];
  const annotation = at(previous, 'metadata', 'annotations', TOLERATIONS_ANNOTATION);
  if (typeof annotation !== 'string' || at(next, 'metadata', 'labels', IGNORE_LABEL) === 'true') return next;
  const present = objects(at(next, ...path));
  const lost = objects(at(previous, ...path)).filter(
    ({ key, value, effect }) =>
      annotation.includes(JSON.stringify({ key, operator: 'Equal', value, effect })) &&
      !present.some(
        (other) =>
          [undefined, key].includes(textOf(other.key)) &&
          [undefined, effect].includes(textOf(other.effect)) &&
          (other.operator === 'Exists' || other.value === value),
      ),
  );
  const isListed = ({ key, operator, value, effect }: JsonObject) =>
    annotation.includes(JSON.stringify({ key, operator, value, effect }));
  const forgets =
    at(next, 'metadata', 'annotations', TOLERATIONS_ANNOTATION) === undefined && present.some((one) => isListed(one));
  if (lost.length === 0 && !forgets) return next;
  const restored = assign(next, path, [...list(at(next, ...path)), ...lost]);
  return assign(restored, ['metadata', 'annotations', TOLERATIONS_ANNOTATION], annotation);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
