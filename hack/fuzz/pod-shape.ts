import * as z from 'zod';
import { assign, at, isObject, type JsonObject } from '../../test/simulator/json.ts';
import { validatePod } from '../../test/simulator/objects/pod-rules.ts';

const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const QUALIFIED = /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
/** Bytes of all names and values (`TotalAnnotationSizeLimitB`). */
const ANNOTATIONS = 256 * 1024;

/**
 * Such a list is refused at its first wrong item, because a list of a hundred thousand may contain only wrong items.
 */
const list = (item: z.ZodType) =>
  z.array(z.unknown()).refine((items) => items.every((each) => item.safeParse(each).success));

const texts = z.record(z.string(), z.string());
const labels = z.record(z.string().regex(QUALIFIED), z.string().regex(LABEL_VALUE));
const annotations = z
  .record(z.string().regex(QUALIFIED), z.string())
  .refine((found) => Buffer.byteLength(Object.entries(found).flat().join('')) <= ANNOTATIONS);

const values = list(z.string()).nullish();
const expression = z
  .looseObject({ key: z.string().regex(QUALIFIED), operator: z.string(), values })
  .refine(({ operator, values }) => {
    const given = values ?? [];
    if (operator === 'In' || operator === 'NotIn') {
      return given.length > 0 && given.every((value) => LABEL_VALUE.test(String(value)));
    }
    if (operator === 'Gt' || operator === 'Lt')
      return given.length === 1 && given.every((value) => /^-?\d+$/.test(String(value)));
    return (operator === 'Exists' || operator === 'DoesNotExist') && given.length === 0;
  });
const field = z
  .looseObject({ key: z.literal('metadata.name'), operator: z.enum(['In', 'NotIn']), values })
  .refine(({ values }) => values?.length === 1);
const term = z.looseObject({ matchExpressions: list(expression).nullish(), matchFields: list(field).nullish() });
const nodeAffinity = z.looseObject({
  requiredDuringSchedulingIgnoredDuringExecution: z
    .looseObject({ nodeSelectorTerms: list(term).refine((terms) => terms.length > 0) })
    .nullish(),
  preferredDuringSchedulingIgnoredDuringExecution: list(
    z.looseObject({ weight: z.int().min(1).max(100), preference: term }),
  ).nullish(),
});

const toleration = z
  .looseObject({
    key: z.string().regex(QUALIFIED).or(z.literal('')).nullish(),
    operator: z.enum(['Equal', 'Exists', '']).nullish(),
    value: z.string().nullish(),
    effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute', '']).nullish(),
    tolerationSeconds: z.int().nullish(),
  })
  .refine(({ key, operator, value, effect, tolerationSeconds }) => {
    if (typeof tolerationSeconds === 'number' && effect !== 'NoExecute') return false;
    if (operator === 'Exists') return (value ?? '') === '';
    return (key ?? '') !== '' && LABEL_VALUE.test(value ?? '');
  });
const gates = list(z.looseObject({ name: z.string().regex(QUALIFIED) })).refine(
  (found) => new Set(found.map((gate) => at(gate, 'name'))).size === found.length,
);
const container = z.looseObject({ name: z.string(), image: z.string().nullish() });

const spec = z.looseObject({
  containers: list(container).nullish(),
  initContainers: list(container).nullish(),
  nodeSelector: texts.nullish(),
  nodeName: z.string().nullish(),
  affinity: z.looseObject({ nodeAffinity: nodeAffinity.nullish() }).nullish(),
  tolerations: list(toleration).nullish(),
  schedulingGates: gates.nullish(),
});
const metadata = z.looseObject({ annotations: annotations.nullish(), labels: labels.nullish() });
const pod = z.looseObject({ metadata, spec });

/**
 * Returns why the API server would refuse a pod, for the fields that the program reads and writes; undefined if it
 * would accept it.
 */
export function whyRefused(object: JsonObject): string | undefined {
  const shape = pod.safeParse(object);
  if (!shape.success) return shape.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
  // Go treats an empty name as absent.
  const [cause] = validatePod(
    at(object, 'spec', 'nodeName') === '' ? assign(object, ['spec', 'nodeName'], undefined) : object,
  );
  return cause === undefined ? undefined : JSON.stringify(cause);
}

/** Returns the pod of a DaemonSet's template, with the DaemonSet's own annotations. */
export function podOfDaemonSet(daemonSet: JsonObject): JsonObject {
  const podSpec = at(daemonSet, 'spec', 'template', 'spec');
  return { ...daemonSet, spec: isObject(podSpec) ? podSpec : undefined };
}
