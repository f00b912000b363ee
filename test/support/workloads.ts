/** Objects as somebody would apply them, in as few words as a test needs. */

export type KubernetesObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
};

/** What the pods of a workload look like. */
export type PodOptions = {
  /** One container for each. */
  readonly images: readonly string[];
  readonly initImages?: readonly string[];
  /** Init containers that stay (`restartPolicy: Always`). */
  readonly sidecarImages?: readonly string[];
  readonly pullPolicy?: string;
  readonly pullSecrets?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Readonly<Record<string, unknown>>[];
  /** More fields of the pod's spec. */
  readonly spec?: Readonly<Record<string, unknown>>;
};

export type WorkloadOptions = PodOptions & {
  /** Default 1. */
  readonly replicas?: number;
  /** More fields of the workload's spec. */
  readonly workload?: Readonly<Record<string, unknown>>;
};

const APP = 'app';

export function pod(namespace: string, name: string, options: PodOptions): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, ...extra(name, options) }, spec: spec(options) };
}

export function deployment(namespace: string, name: string, options: WorkloadOptions): KubernetesObject {
  return workload('Deployment', namespace, name, options, { replicas: options.replicas ?? 1 });
}

export function statefulSet(namespace: string, name: string, options: WorkloadOptions): KubernetesObject {
  const own = { replicas: options.replicas ?? 1, serviceName: name, podManagementPolicy: 'Parallel' };
  return workload('StatefulSet', namespace, name, options, own);
}

export function daemonSet(namespace: string, name: string, options: WorkloadOptions): KubernetesObject {
  return workload('DaemonSet', namespace, name, options, {});
}

/** Its pods are finished by kwok as soon as they are bound. */
export function job(namespace: string, name: string, options: WorkloadOptions): KubernetesObject {
  const once = { ...options, spec: { restartPolicy: 'Never', ...options.spec } };
  const template = { metadata: extra(name, once), spec: spec(once) };
  const completions = options.replicas ?? 1;
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace },
    spec: { template, completions, parallelism: completions, ...options.workload },
  };
}

function workload(kind: string, namespace: string, name: string, options: WorkloadOptions, own: object) {
  const selector = { matchLabels: { [APP]: name } };
  const template = { metadata: extra(name, options), spec: spec(options) };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace },
    spec: { selector, template, ...own, ...options.workload },
  };
}

function extra(name: string, { labels, annotations }: PodOptions) {
  return { labels: { [APP]: name, ...labels }, ...(annotations ? { annotations } : {}) };
}

function spec({ images, initImages = [], sidecarImages = [], pullSecrets, tolerations, ...options }: PodOptions) {
  const policy = options.pullPolicy === undefined ? {} : { imagePullPolicy: options.pullPolicy };
  const named = (prefix: string, list: readonly string[], more: object = {}) =>
    list.map((image, index) => ({ name: `${prefix}-${index}`, image, ...policy, ...more }));
  const initContainers = [
    ...named('sidecar', sidecarImages, { restartPolicy: 'Always' }),
    ...named('init', initImages),
  ];
  return {
    containers: named('main', images),
    ...(initContainers.length > 0 ? { initContainers } : {}),
    ...(pullSecrets ? { imagePullSecrets: pullSecrets.map((name) => ({ name })) } : {}),
    ...(tolerations ? { tolerations } : {}),
    // Deleted at once: nothing runs in these pods.
    terminationGracePeriodSeconds: 0,
    ...options.spec,
  };
}

/** A hard topology spread constraint that counts the pods with the label `app: web`. */
export function spread(topologyKey: string, more: Readonly<Record<string, unknown>> = {}) {
  const labelSelector = { matchLabels: { app: 'web' } };
  return { maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule', labelSelector, ...more };
}
