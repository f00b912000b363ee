import { type Connection, connect } from '../../app/connect.ts';
import { readPoolProblems } from '../../app/read-node-pools.ts';
import type { Context } from '../../app/surroundings.ts';
import { VERSION } from '../../app/version.ts';
import { loopsThatRun, toSettings } from '../../config/settings.ts';
import { strangersText } from '../../kit/cut.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { getDeployment, installationText, readDeployment } from '../../kube/installation/deployment.ts';
import { type FoundLease, getLease } from '../../kube/installation/leases.ts';
import { readAll } from '../../kube/list.ts';
import { APP_LABEL, DEPLOYMENT } from '../../names.ts';
import { countNodes, nodesWithoutTaint } from '../../placement/nodes/counts.ts';
import { architecturesOf, type Node, readNode, taintKind } from '../../placement/nodes/node.ts';
import { joinedUntainted, POOL_PAGE, poolOf } from '../../placement/nodes/pools.ts';
import { nodesWithUnmanagedTaints } from '../../placement/nodes/unmanaged.ts';
import type { Settings } from '../../placement/settings.ts';
import { ownEvents } from '../event-time.ts';
import { tryGuard } from './daemonset-guard.ts';
import { type Facts, type LeaseFact, type PoolFact, type Read, type Replica, readValue, tried } from './facts.ts';
import { type ReplicaMetrics, readReplicaMetrics } from './metrics-text.ts';
import { readTroubles } from './read-troubles.ts';
import { newestNote, oldestOf, readWaiting, taintsOn, type Waiting } from './waiting-pods.ts';
import { lookAtWebhook } from './webhook.ts';

/** A replica that does not send its metrics within this time is shown without them. */
const METRICS_MS = 5_000;
const LABELLED = `labelSelector=${encodeURIComponent(`${APP_LABEL}=${DEPLOYMENT}`)}`;
const UNSCHEDULED = `fieldSelector=${encodeURIComponent('spec.nodeName=')}`;

/**
 * Reads everything that `status` shows. A part that these credentials may not read is left out, with the missing right.
 * `testNamespace`: where the webhook is tested; undefined: in a namespace that is chosen here.
 */
export async function gatherFacts(context: Context, testNamespace: string | undefined): Promise<Facts> {
  const { config, clock, signal, note, origin } = context;
  const connection = await connect(context);
  const { client } = connection;
  try {
    const settings = toSettings(config);
    const { installation } = connection;
    const { namespace } = installation;
    const { enabled, name } = config.leaderElection;
    const leaseNamespace = config.leaderElection.namespace || namespace;
    const [deployment, replicas, lease, nodes] = await Promise.all([
      tried(`get deployments.apps in namespace ${namespace}`, async () => {
        const found = await getDeployment(client, installation, signal);
        return found && readDeployment(found);
      }),
      readReplicas(context, connection, namespace),
      tried(`get leases.coordination.k8s.io in namespace ${leaseNamespace}`, async () =>
        leaseFact(await getLease(client, { namespace: leaseNamespace, name }, signal), clock.wall()),
      ),
      tried('list nodes', () => readAll(client, '/api/v1/nodes', readNode, signal)),
    ]);
    const present = nodes.kind === 'read' ? nodes.value : [];
    const managesNodes = loopsThatRun(config).includes('nodes');
    const lacking = managesNodes ? nodesWithoutTaint(present, settings) : [];
    const [waiting, troubles, pools, { webhook, webhookConfiguration }, guard] = await Promise.all([
      tried('list pods', () => readWaitingPods(context, connection, present, settings)),
      tried('list events.events.k8s.io', () =>
        readTroubles(client, { settings, lacking: new Set(lacking), architectures: architecturesOf(present) }, signal),
      ),
      readPools(connection, nodes, settings, note, signal),
      lookAtWebhook(context, client, { namespace: testNamespace, own: namespace, nodes: present, settings }),
      tried('list daemonsets.apps and namespaces', () => tryGuard(client, settings, signal)),
    ]);
    return {
      commandVersion: VERSION,
      mode: settings.mode,
      taint: taintKind(settings.taints),
      origin,
      elects: enabled,
      installation: installationText(installation),
      leaseName: `${leaseNamespace}/${name}`,
      deployment,
      replicas,
      lease,
      nodes: mapped(nodes, (all) => ({
        counts: countNodes(all, settings),
        lacking,
        unmanaged: nodesWithUnmanagedTaints(all, settings, managesNodes).map(({ name }) => name),
      })),
      waiting,
      troubles,
      pools,
      webhook,
      webhookConfiguration,
      guard,
    };
  } finally {
    await connection.close();
  }
}

function mapped<T, U>(read: Read<T>, change: (value: T) => U): Read<U> {
  return read.kind === 'read' ? { kind: 'read', value: change(read.value) } : read;
}

/** Returns what is shown of a Lease. `now`: the wall time of this machine. */
function leaseFact(lease: FoundLease | undefined, now: number): LeaseFact | undefined {
  if (lease === undefined) return undefined;
  const { holder, renewedAt, durationMs } = lease;
  return { holder, ageMs: Math.max(0, now - renewedAt), durationMs };
}

async function readReplicas(
  { config, clock, signal }: Context,
  { client }: Connection,
  namespace: string,
): Promise<Read<readonly Replica[]>> {
  const pods = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  const found = await tried(`list pods in namespace ${namespace}`, () =>
    readAll(client, `${pods}?${LABELLED}`, readReplica, signal),
  );
  if (found.kind === 'unread') return found;
  const [, port] = /:(\d+)$/.exec(config.metrics.address) ?? [];
  const metricsOf = async (name: string): Promise<Read<ReplicaMetrics>> => {
    if (port === undefined) return { kind: 'unread', why: 'metrics.address is empty, so there are no metrics' };
    const path = `${pods}/${encodeURIComponent(name)}:${port}/proxy/metrics`;
    const late = new AbortController();
    const cancel = clock.after(METRICS_MS, () => late.abort());
    const text = await tried(`get pods/proxy in namespace ${namespace}`, () =>
      client.request('get', path, { signal: AbortSignal.any([signal, late.signal]), asText: true }),
    ).catch((error: unknown): Read<unknown> => {
      if (!late.signal.aborted || signal.aborted) throw error;
      return { kind: 'unread', why: `pod ${name} did not answer on port ${port} within ${METRICS_MS / 1000} s` };
    });
    cancel();
    if (text.kind === 'unread') return text;
    const metrics = readReplicaMetrics(String(text.value));
    return metrics === undefined
      ? { kind: 'unread', why: `pod ${name} answers on port ${port}, but not with metrics of archaware` }
      : { kind: 'read', value: metrics };
  };
  const replicas = found.value.map(async (replica) => ({ ...replica, metrics: await metricsOf(replica.name) }));
  return { kind: 'read', value: await Promise.all(replicas) };
}

/** Reads a pod of archaware; undefined for one that has ended, and for the pod of a Job such as `clean`. */
function readReplica(object: JsonObject): Omit<Replica, 'metrics'> | undefined {
  const metadata = objectAt(object, 'metadata');
  const status = objectAt(object, 'status');
  const ended = ['Succeeded', 'Failed'].includes(stringAt(status, 'phase') ?? '');
  const isOfJob = (listAt(metadata, 'ownerReferences') ?? []).some(({ kind }) => kind === 'Job');
  if (ended || isOfJob || stringAt(metadata, 'deletionTimestamp') !== undefined) return undefined;
  const conditions = listAt(status, 'conditions') ?? [];
  const waiting = (listAt(status, 'containerStatuses') ?? []).flatMap((container) => {
    const state = objectAt(objectAt(container, 'state'), 'waiting');
    return stringAt(state, 'reason') ?? [];
  });
  const unscheduled = conditions.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
  return {
    name: stringAt(metadata, 'name') ?? '',
    ready: conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    trouble: strangersText(waiting[0] ?? (unscheduled && stringAt(unscheduled, 'message')) ?? ''),
  };
}

/** Reads the pods that wait because of archaware, with the reasons of the oldest. */
async function readWaitingPods(
  { clock, signal }: Context,
  { client }: Connection,
  nodes: readonly Node[],
  settings: Settings,
): Promise<Waiting> {
  const taints = taintsOn(nodes, settings);
  const now = clock.wall();
  const read = (object: JsonObject) => readWaiting(object, taints, now);
  const { count, oldest } = oldestOf(await readAll(client, `/api/v1/pods?${UNSCHEDULED}`, read, signal));
  const explained = oldest.map(async (pod) => {
    const found = await tried('list events.events.k8s.io', () =>
      ownEvents(client, pod.namespace, `regarding.name=${pod.name}`, signal),
    );
    return { ...pod, reason: (found.kind === 'read' && newestNote(found.value)) || pod.reason };
  });
  return { count, oldest: await Promise.all(explained) };
}

/** Reads what autoscaler pools lack: from NodePools if they can be read, else from the nodes that joined without the taint. */
async function readPools(
  { client }: Connection,
  nodes: Read<readonly Node[]>,
  settings: Settings,
  note: (line: string) => void,
  signal: AbortSignal,
): Promise<Read<readonly PoolFact[]>> {
  const stated = await readPoolProblems(client, settings, note, signal);
  if (nodes.kind === 'unread' && stated === undefined) return nodes;
  const lacking = new Map<string, PoolFact>();
  for (const node of readValue(nodes) ?? []) {
    const pool = poolOf(node);
    if (pool === undefined || joinedUntainted(node, settings) === undefined) continue;
    if (stated !== undefined && pool.kind === 'NodePool') continue;
    const text = `has nodes without the taint ${taintKind(settings.taints)}: its template needs the taint (${POOL_PAGE})`;
    lacking.set(`${pool.kind} ${pool.name}`, { ...pool, problem: 'taint-missing', severity: 'warning', note: text });
  }
  return { kind: 'read', value: [...(stated ?? []), ...lacking.values()] };
}
