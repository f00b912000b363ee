import { assign, at, equal, type JsonObject, list, object, objects, text } from '../json.ts';
import { type Cause, cause } from './status.ts';

/** `spec` of a pod or of a template with what the server fills in. */
export function defaultPodSpec(spec: JsonObject): JsonObject {
  const containers = (items: unknown) =>
    objects(items).map((container) => ({
      imagePullPolicy: pullPolicy(text(container.image)),
      resources: {},
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
      ...container,
    }));
  return {
    dnsPolicy: 'ClusterFirst',
    restartPolicy: 'Always',
    schedulerName: 'default-scheduler',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    ...spec,
    ...(list(spec.tolerations).length > 0 ? { tolerations: spec.tolerations } : {}),
    containers: containers(spec.containers),
    ...(list(spec.initContainers).length > 0 ? { initContainers: containers(spec.initContainers) } : {}),
  };
}

function pullPolicy(image: string): string {
  const last = image.slice(image.lastIndexOf('/') + 1);
  return last.endsWith(':latest') || !/[:@]/.test(last) ? 'Always' : 'IfNotPresent';
}

const PRIORITIES: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

/** Returns a new pod after the built-in admission plug-ins. The caller passes the service account's pull secrets. */
export function preparePod(pod: JsonObject, pullSecrets: unknown): JsonObject {
  const spec = object(pod.spec);
  const account = text(spec.serviceAccountName) || 'default';
  return {
    ...pod,
    spec: {
      preemptionPolicy: 'PreemptLowerPriority',
      priority: PRIORITIES[text(spec.priorityClassName)] ?? 0,
      ...(list(pullSecrets).length > 0 ? { imagePullSecrets: pullSecrets } : {}),
      ...spec,
      serviceAccountName: account,
      serviceAccount: account,
    },
  };
}

/** The status of a new pod, which comes after admission: a gate may have been added there. */
export function newPodStatus(pod: JsonObject): JsonObject {
  const gated = list(at(pod, 'spec', 'schedulingGates')).length > 0;
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
  };
  return { phase: 'Pending', qosClass: 'BestEffort', ...(gated ? { conditions: [condition] } : {}) };
}

/** The admission plug-in DefaultTolerationSeconds: on creation and on every update. */
export function defaultTolerations(pod: JsonObject): JsonObject {
  const present = objects(at(pod, 'spec', 'tolerations'));
  const missing = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].filter(
    (key) =>
      !present.some(
        (toleration) =>
          (toleration.key === key || text(toleration.key) === '') &&
          (toleration.effect === 'NoExecute' || text(toleration.effect) === ''),
      ),
  );
  if (missing.length === 0) return pod;
  const added = missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }));
  return assign(pod, ['spec', 'tolerations'], [...present, ...added]);
}

export function validatePod(pod: JsonObject): Cause[] {
  const spec = object(pod.spec);
  const causes = validatePodSpec(spec, 'spec');
  if (list(spec.schedulingGates).length > 0 && spec.nodeName !== undefined) {
    causes.push(cause.forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  const gates = objects(spec.schedulingGates).map(({ name }) => name);
  for (const [index, name] of gates.entries()) {
    if (gates.indexOf(name) < index) causes.push(cause.duplicate(`spec.schedulingGates[${index}]`, name));
  }
  return causes;
}

export function validatePodSpec(spec: JsonObject, field: string): Cause[] {
  const causes: Cause[] = [];
  if (list(spec.containers).length === 0) causes.push(cause.required(`${field}.containers`));
  for (const [index, container] of objects(spec.containers).entries()) {
    if (text(container.name) === '') causes.push(cause.required(`${field}.containers[${index}].name`));
    if (text(container.image) === '') causes.push(cause.required(`${field}.containers[${index}].image`));
  }
  for (const [index, toleration] of objects(spec.tolerations).entries()) {
    const { operator = 'Equal', value = '', key = '' } = toleration;
    if (operator === 'Exists' && value !== '') {
      const message = "value must be empty when `operator` is 'Exists'";
      causes.push(cause.invalid(`${field}.tolerations[${index}].operator`, toleration, message));
    }
    if (key === '' && operator !== 'Exists') {
      const message = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      causes.push(cause.invalid(`${field}.tolerations[${index}].operator`, operator, message));
    }
  }
  return causes;
}

const IMMUTABLE =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,' +
  '`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),' +
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

/** What an update of a pod may change (`ValidatePodUpdate`): a gated pod's placement may be narrowed. */
export function validatePodUpdate(next: JsonObject, previous: JsonObject): Cause[] {
  const [spec, old] = [object(next.spec), object(previous.spec)];
  const causes: Cause[] = [];
  const tolerations = objects(spec.tolerations);
  const kept = objects(old.tolerations).every((toleration) =>
    tolerations.some((other) => equal({ ...toleration, tolerationSeconds: 0 }, { ...other, tolerationSeconds: 0 })),
  );
  if (!kept) {
    const message = 'existing toleration can not be modified except its tolerationSeconds';
    return [cause.forbidden('spec.tolerations', message)];
  }
  const oldGates = objects(old.schedulingGates);
  for (const gate of objects(spec.schedulingGates)) {
    if (oldGates.some(({ name }) => name === gate.name)) continue;
    const message = `only deletion is allowed, but found new scheduling gate '${text(gate.name)}'`;
    causes.push(cause.forbidden('spec.schedulingGates', message));
  }
  const gated = oldGates.length > 0;
  if (gated) causes.push(...validateNarrowed(spec, old));
  if (!equal(fixed(spec, gated), fixed(old, gated))) causes.push(cause.forbidden('spec', IMMUTABLE));
  return causes;
}

/** The spec without what may change. */
function fixed(spec: JsonObject, gated: boolean): JsonObject {
  const { tolerations: _t, schedulingGates: _g, activeDeadlineSeconds: _d, ...rest } = spec;
  const withoutImages = (items: unknown) => objects(items).map(({ image: _image, ...other }) => other);
  const { nodeAffinity: _a, ...otherAffinity } = object(rest.affinity);
  if (gated) {
    delete rest.nodeSelector;
    delete rest.affinity;
    if (Object.keys(otherAffinity).length > 0) rest.affinity = otherAffinity;
  }
  const [containers, initContainers] = [withoutImages(rest.containers), withoutImages(rest.initContainers)];
  return { ...rest, containers, initContainers };
}

function validateNarrowed(spec: JsonObject, old: JsonObject): Cause[] {
  const causes: Cause[] = [];
  const selector = object(spec.nodeSelector);
  if (Object.entries(object(old.nodeSelector)).some(([key, value]) => selector[key] !== value)) {
    const message = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
    causes.push(cause.invalid('spec.nodeSelector', selector, message));
  }
  const path = ['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'];
  const [terms, oldTerms] = [objects(at(spec, ...path)), objects(at(old, ...path))];
  const field = `spec.${path.slice(0, 3).join('.')}.nodeSelectorTerms`;
  if (oldTerms.length > 0 && oldTerms.length !== terms.length) {
    const message = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    return [...causes, cause.invalid(field, terms, message)];
  }
  for (const [index, oldTerm] of oldTerms.entries()) {
    const term = object(terms[index]);
    const wasEmpty = list(oldTerm.matchExpressions).length + list(oldTerm.matchFields).length === 0;
    const onlyAdded = ['matchExpressions', 'matchFields'].every((name) => {
      const expected = list(oldTerm[name]);
      return wasEmpty ? list(term[name]).length === 0 : equal(list(term[name]).slice(0, expected.length), expected);
    });
    const message = 'only additions are allowed (no mutations or deletions)';
    if (!onlyAdded) causes.push(cause.invalid(`${field}[${index}]`, term, message));
  }
  return causes;
}
