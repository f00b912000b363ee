/** Looking at the cluster, as kubectl would, and holding what is seen against what is expected. */
import type { EmbeddedCluster } from '../../test/simulator/embedded-cluster.ts';
import { at, type JsonObject, object, objects, text } from '../../test/simulator/json.ts';
import { NAMESPACE, NODES, type Workload } from './workloads.ts';

export type PodSeen = {
  /** Empty while it waits. */
  readonly node: string;
  /** The kubelet has said how it is. */
  readonly reported: boolean;
  readonly crashes: boolean;
  /** The values of its tolerations for our taint. */
  readonly tolerates: readonly string[];
};

export type WorkloadSeen = { readonly workload: Workload; readonly pods: readonly PodSeen[]; readonly notes: string[] };

const KEY = 'supported-arch';

export async function listOf(cluster: EmbeddedCluster, path: string): Promise<readonly JsonObject[]> {
  const { status, body } = await cluster.request('GET', path);
  if (status !== 200) throw new Error(`GET ${path}: ${status}`);
  return objects(at(body, 'items'));
}

/** Our taint on each node, by name; empty where there is none. */
export async function taintsSeen(cluster: EmbeddedCluster): Promise<Map<string, string>> {
  const nodes = await listOf(cluster, '/api/v1/nodes');
  return new Map(
    nodes.map((node) => {
      const taint = objects(at(node, 'spec', 'taints')).find(({ key }) => key === KEY);
      const shown = taint ? `${KEY}=${text(taint.value)}:${text(taint.effect)}` : '';
      return [text(at(node, 'metadata', 'name')), shown];
    }),
  );
}

/** The pods of each workload, and what Events say of them. */
export async function workloadsSeen(cluster: EmbeddedCluster, workloads: readonly Workload[]): Promise<WorkloadSeen[]> {
  const pods = await listOf(cluster, `/api/v1/namespaces/${NAMESPACE}/pods`);
  const events = await listOf(cluster, `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`);
  return workloads.map((workload) => {
    const own = pods.filter((pod) => at(pod, 'metadata', 'labels', 'app') === workload.name);
    const names = new Set(own.map((pod) => at(pod, 'metadata', 'name')));
    const told = events.filter((event) => names.has(at(event, 'regarding', 'name')));
    return {
      workload,
      pods: own.map(podSeen),
      notes: told.map(({ reason, note }) => `${text(reason)}: ${text(note)}`),
    };
  });
}

function podSeen(pod: JsonObject): PodSeen {
  const containers = objects(at(pod, 'status', 'containerStatuses'));
  return {
    node: text(at(pod, 'spec', 'nodeName')),
    reported: containers.length > 0,
    crashes: containers.some(({ ready }) => ready !== true),
    tolerates: tolerationsOf(object(pod.spec)),
  };
}

function tolerationsOf(spec: JsonObject): string[] {
  return objects(spec.tolerations)
    .filter(({ key }) => key === KEY)
    .map(({ value }) => text(value))
    .sort();
}

/** Whether every pod that should be there runs or crashes: nothing is under way. */
export function isCalm({ workload, pods }: WorkloadSeen): boolean {
  const wanted = workload.kind === 'DaemonSet' ? NODES.length : workload.replicas;
  return pods.length === wanted && pods.every(({ reported }) => reported);
}

/** What is not as it should be, a line each. */
export function differences(seen: readonly WorkloadSeen[]): string[] {
  return seen.flatMap((entry) => {
    const fault = differenceOf(entry);
    return fault === undefined ? [] : [`${entry.workload.kind} ${entry.workload.name}: ${fault}`];
  });
}

function differenceOf({ workload, pods, notes }: WorkloadSeen): string | undefined {
  const { expected, kind, replicas } = workload;
  if (expected.kind === 'unplaced') {
    if (pods.length !== replicas || pods.some(({ node }) => node !== '')) return 'expected to wait, unscheduled';
    return notes.some((note) => note.startsWith(expected.reason)) ? undefined : `expected an Event ${expected.reason}`;
  }
  const { architectures } = expected;
  const nodes = NODES.filter(({ architecture }) => architectures.includes(architecture)).map(({ name }) => name);
  const used = [...new Set(pods.map(({ node }) => node))].sort();
  const wanted = kind === 'DaemonSet' ? nodes.length : replicas;
  const list = architectures.join(', ');
  if (pods.length !== wanted) return `expected ${wanted} pods, found ${pods.length}`;
  if (pods.some(({ tolerates }) => tolerates.join() !== architectures.join())) return `expected to tolerate ${list}`;
  const stray = used.filter((node) => !nodes.some((name) => name === node));
  if (stray.length > 0) return `expected on ${list} only, found on ${stray.join(', ') || 'no node'}`;
  return pods.every(({ reported, crashes }) => reported && !crashes) ? undefined : 'expected to run without a crash';
}

/** What of ours is in the cluster, a line each, but for what the manifest brought and the harmless tolerations of pods. */
export async function traces(cluster: EmbeddedCluster): Promise<string[]> {
  const found: string[] = [];
  for (const node of await listOf(cluster, '/api/v1/nodes')) {
    if (speaksOfUs(node)) found.push(`nodes ${text(at(node, 'metadata', 'name'))}`);
  }
  for (const kind of ['daemonsets', 'deployments'] as const) {
    for (const item of await listOf(cluster, `/apis/apps/v1/${kind}`)) {
      if (speaksOfUs(item)) found.push(`${kind} ${text(at(item, 'metadata', 'name'))}`);
    }
  }
  for (const kind of ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'] as const) {
    const items = await listOf(cluster, `/apis/admissionregistration.k8s.io/v1/${kind}`);
    for (const item of items) found.push(`${kind} ${text(at(item, 'metadata', 'name'))}`);
  }
  return found;
}

/** Our taint, tolerations, labels or annotations; who wrote what (managedFields) is history. */
function speaksOfUs(item: JsonObject): boolean {
  const { managedFields: _, ...metadata } = object(item.metadata);
  const shown = JSON.stringify({ ...item, metadata });
  return shown.includes(KEY) || shown.includes('archaware.dev/');
}
