import { jsonSchema } from '../../src/config/json-schema.ts';
import { isObject } from '../../src/kit/json.ts';

type Schema = Readonly<Record<string, unknown>>;

const text: Schema = { type: 'string' };
const flag: Schema = { type: 'boolean' };
const count: Schema = { type: 'integer', minimum: 0 };
const list: Schema = { type: 'array', items: { type: 'object' } };
/** Defined and checked by Kubernetes. */
const free: Schema = { type: 'object' };
const texts: Schema = { type: 'object', additionalProperties: text };
/** The Deployment selects its pods by this label. */
const labels: Schema = { ...texts, properties: { 'app.kubernetes.io/name': false } };
const objectName: Schema = { type: 'string', pattern: '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$' };
/** A name, or empty. */
const optionalName: Schema = { type: 'string', pattern: '^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$' };
const nodePath: Schema = { type: 'string', pattern: '^(/.+)?$' };
/** With its length: the API server accepts no other form. */
const cidr: Schema = { type: 'string', pattern: '^[0-9a-fA-F.:]+/[0-9]{1,3}$' };
const duration: Schema = { type: 'string', pattern: '^([0-9]+(\\.[0-9]+)?(ms|h|m|s))+$' };

/**
 * Returns the JSON Schema of the chart's values: the schema of the configuration, and the chart's other values. Draft
 * 7, which every Helm 3 and 4 reads.
 */
export function valuesSchema(): Schema {
  const { $schema: _, ...config } = Object(byPattern(jsonSchema()));
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...group({
      // Values of a parent chart.
      global: free,
      config,
      withoutTaints: flag,
      image: group({
        // Empty by default; the template says what to do then.
        // As image references have them; a line break would end the YAML's line.
        repository: { type: 'string', pattern: '^[\\w./:@\\[\\]-]*$' },
        tag: { type: 'string', pattern: '^(\\w[\\w.-]{0,127})?$' },
        digest: { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' },
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
        pullSecrets: list,
      }),
      replicas: count,
      topologySpreadConstraints: list,
      podDisruptionBudget: group({
        enabled: flag,
        maxUnavailable: { type: ['integer', 'string'], pattern: '^[0-9]+%$' },
      }),
      resources: free,
      priorityClassName: optionalName,
      nodeSelector: texts,
      tolerations: list,
      affinity: free,
      podSecurityContext: free,
      securityContext: free,
      env: list,
      labels,
      annotations: texts,
      podLabels: labels,
      podAnnotations: texts,
      serviceAccount: group({ create: flag, name: objectName, annotations: texts }),
      rbac: group({ create: flag, clean: flag }),
      guard: group({ enabled: flag, pinned: flag }),
      keep: group({ enabled: { enum: [true, false, 'auto'] } }),
      webhook: group({ pods: flag, certManager: group({ enabled: flag, issuerRef: texts }) }),
      credentials: group({ dockerConfigSecrets: { type: 'array', items: objectName }, directorySecret: optionalName }),
      caConfigMap: optionalName,
      nodePaths: group({
        kubelet: group({ config: nodePath, binDirectory: nodePath }),
        containerd: nodePath,
        containers: nodePath,
      }),
      nodeLabels: group({ shipped: flag, rules: rules() }),
      networkPolicy: group({
        enabled: { enum: [true, false, 'auto'] },
        apiServerCidrs: { type: 'array', items: cidr },
        metricsFrom: list,
        egress: list,
      }),
      serviceMonitor: group({ enabled: flag, interval: duration, labels: texts }),
      prometheusRule: group({ enabled: flag, labels: texts }),
      dashboards: group({ enabled: flag, labels: texts, annotations: texts }),
      cleanBeforeUninstall: group({ enabled: flag }),
    }),
  };
}

function group(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', properties, additionalProperties: false };
}

/** `{domain: {label: lines}}`; the program itself refuses reserved names and invalid lines. */
function rules(): Schema {
  const domain = '^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$';
  return named(domain, named('^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$', text));
}

function named(pattern: string, value: unknown): Schema {
  return { type: 'object', patternProperties: { [pattern]: value }, additionalProperties: false };
}

/**
 * Returns the same schema with patterns of names in the only form for which helm reports the path: for `propertyNames`
 * it reports a wrong one.
 */
function byPattern(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(byPattern);
  if (!isObject(schema)) return schema;
  const { propertyNames, ...rest } = schema;
  const pattern = isObject(propertyNames) ? (propertyNames.pattern ?? oneOf(propertyNames.enum)) : undefined;
  const changed = Object.fromEntries(Object.entries(rest).map(([name, part]) => [name, byPattern(part)]));
  return typeof pattern === 'string' ? { ...changed, ...named(pattern, changed.additionalProperties) } : changed;
}

/** Returns a list of names as a pattern. */
function oneOf(names: unknown): string | undefined {
  return Array.isArray(names) ? `^(${names.join('|')})$` : undefined;
}
