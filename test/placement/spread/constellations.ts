import type { JsonObject } from '../../../src/kit/json.ts';

/*
 * Deployments with topology spread constraints, and how many of their pods run. `limit.test.ts` compares the rule with this table, and
 * `scheduler.e2e.ts` the real scheduler.
 */

/** Labels of the nodes, as domains of different shapes. Every node also has its `kubernetes.io/hostname`. */
export const DOMAINS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'amd64-1': { host: 'h1', zone: 'a', row: '1', shelf: '1' },
  'amd64-2': { host: 'h2', zone: 'b', row: '2' },
  'arm64-1': { host: 'h3', zone: 'c', row: '1', shelf: '2' },
  // With the taint gpu=yes:NoSchedule.
  'arm64-2': { row: '2', shelf: '3' },
};

export type Constellation = {
  readonly title: string;
  readonly image: 'amd64' | 'arm64' | 'multi';
  readonly replicas: number;
  readonly constraints: readonly JsonObject[];
  /** More of the pod's spec. */
  readonly spec?: JsonObject;
  readonly labels?: Readonly<Record<string, string>>;
  /** Pods that are there already. */
  readonly others?: readonly { readonly on: string; readonly labels: Readonly<Record<string, string>> }[];
  /** How many of the pods find a node. */
  readonly runs: number;
  /** False: what keeps the others off is not archaware's doing. */
  readonly isOurs?: false;
};

/** A hard constraint that counts the pods with the label `app: web`. */
export function spread(topologyKey: string, more: JsonObject = {}): JsonObject {
  const labelSelector = { matchLabels: { app: 'web' } };
  return { maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule', labelSelector, ...more };
}

const HOSTNAME = 'kubernetes.io/hostname';
const ARCH = 'kubernetes.io/arch';
const required = (...matchExpressions: readonly JsonObject[]) => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
  },
});
const row = (
  title: string,
  constraints: readonly JsonObject[],
  runs: number,
  more: Partial<Constellation> = {},
): Constellation => ({ title, image: 'amd64', replicas: 4, constraints, runs, ...more });
const WEB = { app: 'web' };

export const CONSTELLATIONS: readonly Constellation[] = [
  row('by host name, one pod for each node that can run it', [spread(HOSTNAME)], 2),
  row('by host name with nodeTaintsPolicy: Honor, all', [spread(HOSTNAME, { nodeTaintsPolicy: 'Honor' })], 4),
  row('by zone, one pod for each zone with such a node', [spread('zone')], 2),
  row('by rows that have both kinds of nodes, all', [spread('row')], 4),
  row('by a skew of 2, two pods for each', [spread('host', { maxSkew: 2 })], 4, { replicas: 5 }),
  row('for the one node of the other architecture, one', [spread('host')], 1, { image: 'arm64' }),
  row('with an image for both, all', [spread('host')], 4, { image: 'multi' }),
  row('with ScheduleAnyway, all', [spread('host', { whenUnsatisfiable: 'ScheduleAnyway' })], 4),
  row('with minDomains that are there, one for each', [spread('host', { minDomains: 3 })], 2),
  row('with more minDomains than there are, one for each', [spread('host', { minDomains: 5 })], 2),
  row(
    'with more minDomains than its own nodes, one for each, whatever the taints',
    [spread('host', { minDomains: 3, nodeTaintsPolicy: 'Honor' })],
    2,
    { isOurs: false },
  ),
  row('with a node selector on the architecture, all', [spread('host')], 4, {
    spec: { nodeSelector: { [ARCH]: 'amd64' } },
  }),
  row('with node affinity on the architecture, all', [spread('host')], 4, {
    spec: required({ key: ARCH, operator: 'In', values: ['amd64'] }),
  }),
  row(
    'with a node selector that the constraint ignores, one for each',
    [spread('host', { nodeAffinityPolicy: 'Ignore' })],
    2,
    { spec: { nodeSelector: { [ARCH]: 'amd64' } } },
  ),
  row('with a selector that excludes one of its nodes, one', [spread('host')], 1, {
    spec: required({ key: 'host', operator: 'In', values: ['h1', 'h3'] }),
  }),
  row('where its own pods do not count, all', [spread('host', { labelSelector: { matchLabels: { app: 'db' } } })], 4),
  row('with an empty selector, all', [spread('host', { labelSelector: {} })], 4),
  row('without a selector, all', [spread('host', { labelSelector: null })], 4),
  row('where another pod counts on the node that it cannot use, twice as many', [spread('host')], 4, {
    replicas: 5,
    others: [{ on: 'arm64-1', labels: WEB }],
  }),
  row('where another pod counts on a node of its own, one fewer', [spread('host')], 1, {
    others: [{ on: 'amd64-1', labels: WEB }],
  }),
  row('where pods of another revision do not count, one for each', [spread('host', { matchLabelKeys: ['rev'] })], 2, {
    labels: { rev: '2' },
    others: [{ on: 'amd64-1', labels: { ...WEB, rev: '1' } }],
  }),
  row(
    'with expressions, what they select',
    [spread('host', { labelSelector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['db'] }] } })],
    1,
    { others: [{ on: 'amd64-2', labels: { tier: 'x' } }] },
  ),
  row('by hosts and zones, as many as both let run', [spread('host', { maxSkew: 2 }), spread('zone')], 2),
  row(
    'by hosts and rows, where only nodes with both labels count',
    [spread('host', { nodeTaintsPolicy: 'Honor' }), spread('row')],
    4,
  ),
  row('where the empty domain has the taint of others, one for each', [spread('shelf')], 2, {
    image: 'multi',
    isOurs: false,
  }),
  row('where one empty domain has the taint of archaware, and one that of others', [spread('shelf')], 1),
];
