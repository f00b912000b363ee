import { STATUS_CODES } from 'node:http';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { createPoolLabels, createRegistryLabels } from './bounded-labels.ts';

/** The gauges that are measured at each scrape: by what measures them their name, what they are, and their label if they have one. */
const MEASURED = {
  queueDepths: ['workqueue_depth', 'Keys that are ready to be processed.', 'controller'],
  unresolvableImages: ['unresolvable_images', 'Images whose last lookup failed.'],
  oldestWaitingPodSeconds: ['oldest_waiting_pod_seconds', 'Age of the oldest pod that waits for an image.'],
  nodes: [
    'nodes',
    'Nodes by architecture: unknown before the kubelet reports one, other for a name that Go does not have.',
    'architecture',
  ],
  pods: ['pods', 'Pods by outcome.', 'outcome'],
  wrongNodePods: ['wrong_node_pods', 'Pods that are now on a node whose architecture their images lack.'],
  gatedPods: ['gated_pods', 'Pods that have the scheduling gate of archaware.'],
  taintedNodes: ['tainted_nodes', 'Nodes that have the taint of archaware, by architecture.', 'architecture'],
  safetyNets: [
    'safety_net_holds',
    '1 if the safety net held when the leader last tried it, 0 if not, NaN if that is not known.',
    'net',
  ],
  publishedImages: [
    'published_images',
    'Images whose architectures the leader has published, so that the API server places new pods of them.',
  ],
  contestedObjects: [
    'contested_objects',
    'Objects that archaware does not write for a while, because another writer keeps undoing its writes.',
  ],
  taintsHeldBack: [
    'taints_held_back',
    'Nodes that stay without the taint of archaware, because it would cut a DaemonSet off from them.',
  ],
  rolloutStopped: [
    'rollout_stopped',
    'DaemonSets that did not come back within five minutes after archaware had changed their template.',
  ],
  leader: ['leader', '1 if this process is the leader, else 0.'],
  certificateExpirySeconds: [
    'certificate_expiry_seconds',
    'Seconds until the serving certificate of the webhook expires; NaN without one.',
  ],
} as const;

/** Undefined: it is not known. */
type Sample = number | boolean | undefined;
type Samples<Gauge> = Gauge extends readonly [string, string] ? Sample : Readonly<Record<string, Sample>>;
type Measured<Gauge> = () => Samples<Gauge> | Promise<Samples<Gauge>>;

/** What measures the values, at each scrape. */
export type Observed = { readonly [Gauge in keyof typeof MEASURED]: Measured<(typeof MEASURED)[Gauge]> } & {
  readonly readiness: () => Promise<ReadinessSamples>;
};

/** How far the pods are for each target architecture, in cores and bytes, and the images that block most cores. */
export type ReadinessSamples = {
  readonly pods: readonly Readonly<
    Record<(typeof READINESS_LABELS)[number], string> & Record<'pods' | 'cpu' | 'memory', number>
  >[];
  readonly images: readonly { readonly target: string; readonly image: string; readonly cpu: number }[];
};

const READINESS_LABELS = ['target', 'namespace', 'state', 'architecture'] as const;

type MetricKind = 'counter' | 'gauge' | 'histogram';

/** What a metric is, as its page says it. */
type MetricDefinition = {
  readonly name: string;
  readonly type: MetricKind;
  readonly labels: readonly string[];
  readonly help: string;
};

/** Every metric of the program. Their names are documented and do not change. */
export type Metrics = ReturnType<typeof createMetrics>;

const FAST = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SLOW = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
/** Authors of pods choose host names: without a limit, the labels would fill the memory of Prometheus. */
const MAX_REGISTRIES = 100;
const REGISTRY_IDLE_MS = 60 * 60_000;

/** Creates the metrics. `now`: milliseconds of a clock that never goes back. */
export function createMetrics(version: string, now: () => number) {
  const series = createSeries();
  series.reloadSuccess.set(1);
  series.buildInfo.set({ version, node_version: process.version }, 1);
  /** The methods and codes that were counted for each registry, so that its series can be removed with its label. */
  const counted = new Map<string, Map<string, { registry: string; method: string; code: string }>>();
  const { configure, labelOf } = createRegistryLabels({
    most: MAX_REGISTRIES,
    idleMs: REGISTRY_IDLE_MS,
    now,
    onForgotten(label) {
      for (const labels of counted.get(label)?.values() ?? []) series.registryRequests.remove(labels);
      counted.delete(label);
      const { registrySeconds, rateLimit, rateLimitRemaining } = series;
      for (const metric of [registrySeconds, rateLimit, rateLimitRemaining]) metric.remove({ registry: label });
    },
  });
  const poolLabel = createPoolLabels();

  return {
    definitions: (): readonly MetricDefinition[] => series.defined,
    reconciled(controller: string, result: string, seconds: number) {
      series.reconciles.inc({ controller, result });
      series.reconcileSeconds.observe({ controller }, seconds);
    },
    nodeJoinedUntainted: (pool: string) => series.joinedUntainted.inc({ pool: poolLabel(pool) }),
    wrongNodeFound: (reason: string, action: string) => series.wrongNodePods.inc({ reason, action }),
    reviewed(outcome: string, seconds: number) {
      series.admissions.inc({ outcome });
      series.admissionSeconds.observe(seconds);
    },
    podPlaced: (seconds: number) => series.placementSeconds.observe(seconds),
    imageResolved: (result: string) => series.resolutions.inc({ result }),
    cacheAnswered: (result: string) => series.cache.inc({ result }),
    registryAnswered(request: { registry: string; method: string; code: string; seconds: number }) {
      const registry = labelOf(request.registry, /^2\d\d$/.test(request.code));
      // A registry may answer with any three-digit number, and each would become a series.
      const isOther = /^[0-9]+$/.test(request.code) && STATUS_CODES[request.code] === undefined;
      const labels = { registry, method: request.method, code: isOther ? 'other' : request.code };
      const ofRegistry = counted.get(registry) ?? new Map();
      counted.set(registry, ofRegistry.set(`${labels.method} ${labels.code}`, labels));
      series.registryRequests.inc(labels);
      series.registrySeconds.observe({ registry }, request.seconds);
    },
    rateLimitTold(reported: { registry: string; limit?: number; remaining?: number }) {
      const labels = { registry: labelOf(reported.registry, false) };
      if (reported.limit !== undefined) series.rateLimit.set(labels, reported.limit);
      if (reported.remaining !== undefined) series.rateLimitRemaining.set(labels, reported.remaining);
    },
    apiAnswered: (request: { verb: string; resource: string; code: string }) => series.apiRequests.inc({ ...request }),
    /** Counts a write of this controller that was refused because of its content, not because of the server's state. */
    writeRefused: (controller: string) => series.writesRefused.inc({ controller }),
    eventDropped: () => series.eventsDropped.inc(),
    /** Gives each of these registries a label of its own, always. */
    registriesConfigured: configure,
    configReloaded: (succeeded: boolean) => series.reloadSuccess.set(succeeded ? 1 : 0),
    watchRestarted: (kind: string) => series.watchRestarts.inc({ kind }),
    /** Renders all metrics in the text format of Prometheus. */
    render: (observed: Observed) => render(series, observed),
  };
}

function createSeries() {
  const registry = new Registry();
  const defined: MetricDefinition[] = [];
  const define = <T extends string>(type: MetricKind, name: string, help: string, labels: readonly T[]) => {
    defined.push({ name: `archaware_${name}`, type, labels, help });
    return { name: `archaware_${name}`, help, labelNames: labels, registers: [registry] };
  };
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    new Counter(define('counter', name, help, labelNames));
  const histogram = <T extends string>(name: string, help: string, labelNames: readonly T[], buckets: number[]) =>
    new Histogram({ ...define('histogram', name, help, labelNames), buckets });
  const gauge = <T extends string>(name: string, help: string, labelNames: readonly T[] = []) =>
    new Gauge(define('gauge', name, help, labelNames));

  const measured = Object.entries<readonly [string, string, string?]>(MEASURED).map(([key, [name, help, label]]) => {
    return [key, { label, gauge: gauge<string>(name, help, label ? [label] : []) }] as const;
  });
  return {
    registry,
    defined,
    measured: new Map(measured),
    reconciles: counter('reconcile_total', 'Reconciliations by result.', ['controller', 'result']),
    reconcileSeconds: histogram('reconcile_duration_seconds', 'Duration of a reconciliation.', ['controller'], FAST),
    placementSeconds: histogram(
      'pod_placement_seconds',
      'Time from the creation of a pod until its tolerations are written.',
      [],
      SLOW,
    ),
    resolutions: counter('image_resolutions_total', 'Lookups of images by result: ok, or the code of the error.', [
      'result',
    ]),
    registryRequests: counter('registry_requests_total', 'Requests to registries.', ['registry', 'method', 'code']),
    registrySeconds: histogram(
      'registry_request_duration_seconds',
      'Duration of a request to a registry.',
      ['registry'],
      SLOW,
    ),
    rateLimit: gauge(
      'registry_ratelimit_limit',
      'Requests that a registry allows in its window, from its header ratelimit-limit.',
      ['registry'],
    ),
    rateLimitRemaining: gauge(
      'registry_ratelimit_remaining',
      'Requests that are left in this window, from the header ratelimit-remaining.',
      ['registry'],
    ),
    cache: counter('resolver_cache_total', 'Lookups in the cache of images by result: hit, miss, stale, revalidated.', [
      'result',
    ]),
    apiRequests: counter('api_requests_total', 'Requests to the API server.', ['verb', 'resource', 'code']),
    wrongNodePods: counter(
      'wrong_node_pods_total',
      'Pods with a container that does not run on its node, by reason and action.',
      ['reason', 'action'],
    ),
    admissions: counter('admission_reviews_total', 'AdmissionReviews by outcome.', ['outcome']),
    admissionSeconds: histogram('admission_duration_seconds', 'Duration of an AdmissionReview.', [], FAST),
    joinedUntainted: counter(
      'nodes_joined_untainted_total',
      'Nodes of a pool that joined without the taint of archaware.',
      ['pool'],
    ),
    readyPods: gauge(
      'readiness_pods',
      'Pods by target architecture, namespace (the 100 largest, then other), state for the target (ready, pinned, blocked, unknown) and the architecture of their nodes.',
      READINESS_LABELS,
    ),
    readyCores: gauge('readiness_cpu_cores', 'The cores that these pods request.', READINESS_LABELS),
    readyBytes: gauge('readiness_memory_bytes', 'The memory that these pods request.', READINESS_LABELS),
    blockedCores: gauge(
      'blocked_cpu_cores',
      'The cores that pods request which an image keeps from the target: the 20 images that block most.',
      ['target', 'image'],
    ),
    writesRefused: counter('writes_refused_total', 'Writes that the API server, a policy or a webhook refused.', [
      'controller',
    ]),
    eventsDropped: counter(
      'events_dropped_total',
      'Events that were not written: too many at once, or too many about one object.',
      [],
    ),
    watchRestarts: counter('watch_restarts_total', 'Watches that ended before their time was over.', ['kind']),
    reloadSuccess: gauge(
      'config_reload_success',
      '1 if the current configuration file is in use, 0 if it was refused.',
    ),
    buildInfo: gauge('build_info', 'Version of the program and of Node.js.', ['version', 'node_version']),
  };
}

/** A value of zero would raise an alarm about what is not known. */
function numberOf(sample: Sample): number {
  return sample === undefined ? Number.NaN : Number(sample);
}

async function render(
  series: ReturnType<typeof createSeries>,
  observed: Observed,
): Promise<{ contentType: string; text: string }> {
  const { readiness, ...measures } = observed;
  for (const [key, measure] of Object.entries(measures)) {
    const value = await measure();
    const { label = '', gauge } = series.measured.get(key) ?? {};
    // The last node of an architecture may be gone, and so may the queues of a leader.
    if (label !== '') gauge?.reset();
    if (typeof value !== 'object') gauge?.set(numberOf(value));
    else for (const [name, sample] of Object.entries(value)) gauge?.set({ [label]: name }, numberOf(sample));
  }
  const { readyPods, readyCores, readyBytes, blockedCores, registry } = series;
  const { pods, images } = await readiness();
  for (const metric of [readyPods, readyCores, readyBytes, blockedCores]) metric.reset();
  for (const { target, namespace, state, architecture, ...sums } of pods) {
    const labels = { target, namespace, state, architecture };
    readyPods.set(labels, sums.pods);
    readyCores.set(labels, sums.cpu);
    readyBytes.set(labels, sums.memory);
  }
  for (const { target, image, cpu } of images) blockedCores.set({ target, image }, cpu);
  return { contentType: registry.contentType, text: await registry.metrics() };
}
