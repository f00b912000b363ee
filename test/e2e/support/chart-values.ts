import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { CHART } from '../../../hack/chart/files.ts';

/** The values files that the chart ships for a mode, by their names. */
const SHIPPED: Readonly<Record<string, Readonly<Record<string, unknown>>>> = Object.fromEntries(
  readdirSync(CHART)
    .filter((name) => /^values-.*\.yaml$/.test(name))
    .map((name) => [name, parse(readFileSync(new URL(name, CHART), 'utf8'))]),
);

/** Sets of values that between them use whatever the chart offers. */
const WEBHOOK = { webhook: { enabled: true } };
const EVERYTHING = {
  config: {
    placement: { mode: 'both', noCommonArchitecture: 'reject', publish: true },
    taints: { key: 'example.com/arch', effect: 'PreferNoSchedule' },
    architectures: { schedulable: ['amd64', 'arm64'], preferred: { arm64: 75 } },
    policies: [{ name: 'team-a', namespaces: ['team-a-*'], unresolvable: 'wait' }],
    pods: { excludeNamespaces: ['legacy', 'old-*'], matchNodeLabels: ['example.com/pool'] },
    credentials: { dockerConfigFiles: ['/elsewhere/config.json'] },
    images: { cache: { maxEntries: 1_000_000 } },
    ...WEBHOOK,
  },
  image: {
    repository: 'registry.example.com/archaware',
    digest: `sha256:${'0'.repeat(64)}`,
    pullSecrets: [{ name: 'pull' }],
  },
  replicas: 3,
  podDisruptionBudget: { maxUnavailable: '50%' },
  nodeSelector: { 'example.com/pool': 'system' },
  tolerations: [{ key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' }],
  env: [{ name: 'HTTPS_PROXY', value: 'http://proxy.example.com:3128' }],
  labels: {
    'example.com/team': 'platform',
    'app.kubernetes.io/part-of': 'platform',
    'app.kubernetes.io/instance': 'mine',
  },
  annotations: { 'example.com/owner': 'platform' },
  podLabels: { 'example.com/pod': 'yes' },
  podAnnotations: { 'example.com/note': 'hello' },
  serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/archaware' } },
  credentials: { dockerConfigSecrets: ['hub', 'quay'], directorySecret: 'registries' },
  caConfigMap: 'our-ca',
  nodePaths: {
    kubelet: { config: '/etc/kubelet/credentials.yaml', binDirectory: '/opt/bin' },
    containerd: '/etc/containerd/certs.d',
  },
  nodeLabels: { shipped: true, rules: { 'example.com': { gpu: 'nvidia.com/gpu.present\n' } } },
  networkPolicy: {
    enabled: true,
    metricsFrom: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
    egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }],
  },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
  dashboards: { enabled: true, annotations: { grafana_folder: 'Platform' } },
  cleanBeforeUninstall: { enabled: false },
};

export const COMBINATIONS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  defaults: {},
  ...SHIPPED,
  'nothing but taints on nodes': { config: { loops: ['nodes'] } },
  'without the policy that keeps tolerations': { keep: { enabled: false } },
  'with the webhook for DaemonSets': { config: WEBHOOK, keep: { enabled: false } },
  'with the webhook for pods in the mode taints': { config: WEBHOOK, webhook: { pods: true } },
  both: { config: { placement: { mode: 'both' }, ...WEBHOOK } },
  observe: { config: { placement: { mode: 'observe' } }, keep: { enabled: true } },
  'without DaemonSets': { config: { pods: { daemonSets: 'ignore' } } },
  'cert-manager with an Issuer of its own': { config: WEBHOOK, webhook: { certManager: { enabled: true } } },
  'cert-manager with an issuer of the cluster': {
    config: { placement: { mode: 'both' }, ...WEBHOOK },
    webhook: { certManager: { enabled: true, issuerRef: { kind: 'ClusterIssuer', name: 'internal' } } },
  },
  'label rules alone': { config: { loops: ['labels'] }, nodeLabels: { shipped: true } },
  'label rules of a long domain': {
    nodeLabels: {
      rules: { 'a.very.long.name.of.a.domain.of.some.department.example.com': { gpu: 'nvidia.com/gpu.present' } },
    },
  },
  'one replica without a leader': { replicas: 1, config: { leaderElection: { enabled: false } } },
  'no replica, a Lease elsewhere': { replicas: 0, config: { leaderElection: { namespace: 'default', name: 'other' } } },
  'no metrics, no right to pull secrets': { config: { metrics: { address: '' }, credentials: { pullSecrets: false } } },
  'other ports': {
    config: { metrics: { address: '0.0.0.0:9191' }, webhook: { enabled: true, address: ':8443' } },
    networkPolicy: { enabled: true },
    serviceMonitor: { enabled: true },
  },
  'evictions without clean, so without the hook': {
    config: { pods: { onWrongNode: 'evict' } },
    rbac: { clean: false },
  },
  'rights and account by somebody else': {
    rbac: { create: false },
    serviceAccount: { create: false, name: 'somebody' },
    guard: { enabled: false },
    podDisruptionBudget: { enabled: false },
    affinity: null,
    topologySpreadConstraints: [],
    priorityClassName: '',
  },
  everything: EVERYTHING,
};
