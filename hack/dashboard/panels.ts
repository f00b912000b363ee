/** The panels of the Grafana dashboard: the one list from which the chart's file, the test of its queries and its picture are made. */

/** A unit as Grafana names it. */
type Unit = 'short' | 'percentunit' | 's' | 'bytes' | 'reqps' | 'ops';

export type Panel = {
  readonly title: string;
  /** What the panel answers, and where to go on; shown at its title. */
  readonly help: string;
  readonly unit: Unit;
  /** One line or area for each series of each query; `legend` in Grafana's form. */
  readonly queries: readonly { readonly expr: string; readonly legend: string }[];
  /** A number in place of a graph; it turns red at this value. */
  readonly alarmAt?: number;
};

export type Row = { readonly title: string; readonly panels: readonly Panel[] };

const one = (expr: string, legend: string) => [{ expr, legend }];
/** A quantile of a histogram over five minutes. */
const quantile = (of: number, histogram: string, by = '') =>
  `histogram_quantile(${of}, sum by (le${by}) (rate(${histogram}_bucket[5m])))`;
/** The rate of a counter over five minutes, by labels. */
const rate = (counter: string, ...by: readonly string[]) => `sum by (${by.join(', ')}) (rate(${counter}[5m]))`;
/** Only the leader counts what the loops do, so the largest value is the leader's. */
const leaders = (gauge: string, ...by: readonly string[]) =>
  `max${by.length === 0 ? ' ' : ` by (${by.join(', ')}) `}(${gauge})`;

/** The labels of the metrics of readiness. */
const READINESS = ['target', 'namespace', 'state', 'architecture'];
const CORES_OF_TARGET = (where: string) =>
  `sum by (target) (${leaders(`archaware_readiness_cpu_cores${where}`, ...READINESS)})`;

export const ROWS: readonly Row[] = [
  {
    title: 'Placement now',
    panels: [
      {
        title: 'Replicas that lead',
        help: 'Exactly one. None: docs/alerts.md, ArchawareNoLeader.',
        unit: 'short',
        queries: one('sum(archaware_leader)', 'leaders'),
      },
      {
        title: 'Pods on a wrong node',
        help: 'Their images lack the architecture of their node. `archaware plan` names them.',
        unit: 'short',
        queries: one(leaders('archaware_wrong_node_pods'), 'pods'),
        alarmAt: 1,
      },
      {
        title: 'Oldest waiting pod',
        help: 'Age of the oldest pod that waits for an image. `archaware explain` says for what.',
        unit: 's',
        queries: one(leaders('archaware_oldest_waiting_pod_seconds'), 'age'),
        alarmAt: 300,
      },
      {
        title: 'Pods',
        help: 'placed; waiting for an image; held, because their images have nothing in common; open, because nothing could be found out; ignored.',
        unit: 'short',
        queries: one(leaders('archaware_pods', 'outcome'), '{{outcome}}'),
      },
      {
        title: 'Nodes',
        help: 'Nodes of each architecture, and how many of them have the taint of archaware.',
        unit: 'short',
        queries: [
          { expr: leaders('archaware_nodes', 'architecture'), legend: '{{architecture}}' },
          { expr: leaders('archaware_tainted_nodes', 'architecture'), legend: '{{architecture}}, tainted' },
        ],
      },
      {
        title: 'Time to placement',
        help: 'From the creation of a pod until its tolerations are written.',
        unit: 's',
        queries: [
          { expr: quantile(0.5, 'archaware_pod_placement_seconds'), legend: 'half of the pods' },
          { expr: quantile(0.99, 'archaware_pod_placement_seconds'), legend: '99 of 100' },
        ],
      },
    ],
  },
  {
    title: 'Pods that wait, and why',
    panels: [
      {
        title: 'Waiting, held, gated',
        help: 'Gated pods have the scheduling gate of archaware and start when their images are known.',
        unit: 'short',
        queries: [
          { expr: leaders('archaware_pods{outcome=~"waiting|held"}', 'outcome'), legend: '{{outcome}}' },
          { expr: leaders('archaware_gated_pods'), legend: 'gated' },
        ],
      },
      {
        title: 'Images that cannot be resolved',
        help: 'Images whose last lookup failed. Events ImageUnresolvable name them.',
        unit: 'short',
        queries: one(leaders('archaware_unresolvable_images'), 'images'),
      },
      {
        title: 'Lookups by result',
        help: 'ok, or the code of the error.',
        unit: 'ops',
        queries: one(rate('archaware_image_resolutions_total', 'result'), '{{result}}'),
      },
    ],
  },
  {
    title: 'Registries and their limits',
    panels: [
      {
        title: 'Requests by registry',
        help: 'The configured registries, and the first 100 others.',
        unit: 'reqps',
        queries: one(rate('archaware_registry_requests_total', 'registry'), '{{registry}}'),
      },
      {
        title: 'Answers other than success',
        help: '429: a limit. 401 before a login is usual.',
        unit: 'reqps',
        queries: one(
          rate('archaware_registry_requests_total{code!~"2.."}', 'registry', 'code'),
          '{{registry}} {{code}}',
        ),
      },
      {
        title: 'Duration of a request',
        help: '95 of 100 requests are at least as fast.',
        unit: 's',
        queries: one(quantile(0.95, 'archaware_registry_request_duration_seconds', ', registry'), '{{registry}}'),
      },
      {
        title: 'Left of a registry’s limit',
        help: 'As the registry says it; registries that say nothing are not shown.',
        unit: 'short',
        queries: one('min by (registry) (archaware_registry_ratelimit_remaining)', '{{registry}}'),
      },
    ],
  },
  {
    title: 'Ready for each architecture',
    panels: [
      {
        title: 'Requested cores that are ready',
        help: 'The share of all requested cores whose pods could run on the target today. `archaware report` names the others.',
        unit: 'percentunit',
        queries: one(
          `(${CORES_OF_TARGET('{state="ready"}')} or 0 * ${CORES_OF_TARGET('')}) / ${CORES_OF_TARGET('')}`,
          '{{target}}',
        ),
      },
      {
        title: 'Cores by state',
        help: 'pinned: something else than an image keeps the pods away; blocked: an image has no build for the target.',
        unit: 'short',
        queries: one(
          `sum by (target, state) (${leaders('archaware_readiness_cpu_cores', ...READINESS)})`,
          '{{target}} {{state}}',
        ),
      },
      {
        title: 'Blocked cores by image',
        help: 'What the build of an image would free, where no other image blocks the same pods.',
        unit: 'short',
        queries: one(
          `topk by (target) (5, ${leaders('archaware_blocked_cpu_cores', 'target', 'image')}) > 0`,
          '{{target}} {{image}}',
        ),
      },
    ],
  },
  {
    title: 'Admission',
    panels: [
      {
        title: 'Reviews by outcome',
        help: 'Zero while pods are created: the API server does not reach the webhook.',
        unit: 'reqps',
        queries: one(rate('archaware_admission_reviews_total', 'outcome'), '{{outcome}}'),
      },
      {
        title: 'Duration of a review',
        help: 'The API server waits for it. 99 of 100 reviews are at least as fast.',
        unit: 's',
        queries: one(quantile(0.99, 'archaware_admission_duration_seconds'), '99 of 100'),
      },
      {
        title: 'Certificate',
        help: 'Time until the serving certificate expires. archaware renews its own.',
        unit: 's',
        queries: one('min(archaware_certificate_expiry_seconds)', 'until it expires'),
      },
    ],
  },
  {
    title: 'Writes',
    panels: [
      {
        title: 'Reconciliations by result',
        help: 'unchanged costs no write.',
        unit: 'ops',
        queries: one(rate('archaware_reconcile_total', 'controller', 'result'), '{{controller}} {{result}}'),
      },
      {
        title: 'Refused or contested',
        help: 'Refused by the API server, a policy or a webhook; contested by another writer. Events name the objects.',
        unit: 'short',
        queries: [
          {
            expr: 'sum by (controller) (increase(archaware_writes_refused_total[15m]))',
            legend: '{{controller}}, refused',
          },
          { expr: leaders('archaware_contested_objects'), legend: 'contested' },
        ],
      },
      {
        title: 'Taints held back, rollouts stopped',
        help: 'Runbooks taints-held-back and rollout-stopped.',
        unit: 'short',
        queries: [
          { expr: leaders('archaware_taints_held_back'), legend: 'nodes without their taint' },
          { expr: leaders('archaware_rollout_stopped'), legend: 'rollouts stopped' },
        ],
      },
      {
        title: 'Requests to the API server',
        help: 'By verb and resource.',
        unit: 'reqps',
        queries: one(rate('archaware_api_requests_total', 'verb', 'resource'), '{{verb}} {{resource}}'),
      },
      {
        title: 'Memory',
        help: 'Of each replica, as the kubelet reports it.',
        unit: 'bytes',
        queries: one('max by (pod) (container_memory_working_set_bytes{container="archaware-controller"})', '{{pod}}'),
      },
    ],
  },
];
