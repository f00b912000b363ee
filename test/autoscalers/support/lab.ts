import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expectSuccess } from '../../../hack/cluster/client.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { type LiveWorld, startWorld } from '../../e2e/support/world.ts';
import { nameOf, runs, scheduledOn, uidOf } from '../../support/objects.ts';
import { startKarpenter, startSlowKubelets } from './karpenter.ts';
import { NODE_CLASS, type NodePoolOptions, nodePool } from './pools.ts';

const KARPENTER = '/apis/karpenter.sh/v1';
/** Karpenter takes half a minute to see that a node is not needed, and some seconds for the rest. */
const DEADLINE_MS = 120_000;
const LOOK_MS = 200;
const LOG_LINES = 40;

/** A node that Karpenter started. */
export type Started = { readonly seconds: number; readonly type: string; readonly pool: string };

/** Pods by workload: how many there are, how many run, and on which architectures. */
export type Placed = { readonly all: number; readonly running: number; readonly on: readonly string[] };

/** A cluster without a node of its own, with Karpenter. */
export type Lab = {
  readonly world: LiveWorld;
  applyPools(pools: readonly NodePoolOptions[]): Promise<void>;
  /** Begins to count nodes and seconds. */
  begin(): void;
  /** Resolves when so many seconds have passed since: for what should not have happened by then. */
  past(seconds: number): Promise<unknown>;
  /** The nodes that were started since, in order. */
  started(): readonly Started[];
  placed(app: string): Promise<Placed>;
  /** What the scheduler or Karpenter said in Events about the pods of a workload. */
  messages(app: string, by: 'karpenter' | 'default-scheduler'): Promise<string[]>;
  nodes(): Promise<readonly unknown[]>;
  /** What there is, for a case that failed. */
  state(): Promise<string>;
  nodeClaims(): Promise<readonly unknown[]>;
  eventually<T>(what: string, condition: () => Promise<T | false | undefined>): Promise<T>;
  /** Ends controllers and removes workloads, NodePools and nodes. */
  wipe(): Promise<void>;
  stop(): Promise<void>;
};

export const NAMESPACE = 'shop';

/** Starts everything; about half a minute. */
export async function startLab(): Promise<Lab> {
  const world = await startWorld({ nodes: [], cluster: { kwok: false } });
  try {
    const kubelets = await startSlowKubelets(world.cluster);
    const karpenter = await startKarpenter(world.cluster);
    const lab = await labOf(world);
    return {
      ...lab,
      async stop() {
        await Promise.all([lab.stop(), karpenter.stop(), kubelets.stop()]);
      },
    };
  } catch (error) {
    await world.stop();
    throw error;
  }
}

async function labOf(world: LiveWorld): Promise<Lab> {
  const { request } = world.cluster;
  await world.namespace(NAMESPACE);
  await world.cluster.apply(JSON.stringify(NODE_CLASS));
  const list = async (path: string) => listAt(expectSuccess(path, await request('GET', path)), 'items');
  const nodeClaims = () => list(`${KARPENTER}/nodeclaims`);
  const eventually: Lab['eventually'] = (what, condition) => world.cluster.waitFor(what, condition, DEADLINE_MS);

  let [began, stopped] = [performance.now(), false];
  let started: Started[] = [];
  const seen = new Set<string>();
  /** Those of the case before, which are on their way out. */
  let earlier = new Set<string>();
  const typeOf = (claim: unknown) => at(claim, 'metadata', 'labels', 'node.kubernetes.io/instance-type');
  const watching = (async () => {
    while (!stopped) {
      for (const claim of await nodeClaims().catch(() => [])) {
        const [uid, type] = [uidOf(claim), typeOf(claim)];
        // The type is known once the provider has started it.
        if (seen.has(uid) || typeof type !== 'string') continue;
        seen.add(uid);
        const pool = String(at(claim, 'metadata', 'labels', 'karpenter.sh/nodepool'));
        if (!earlier.has(uid)) started.push({ seconds: Math.round((performance.now() - began) / 1000), type, pool });
      }
      await delay(LOOK_MS);
    }
  })();

  const remove = async (path: string) => void (await request('DELETE', path));

  return {
    world,
    async applyPools(pools) {
      await world.cluster.apply(pools.map((pool) => JSON.stringify(nodePool(pool))).join('\n---\n'));
      await policyWorks(pools);
    },
    begin() {
      earlier = new Set(seen);
      began = performance.now();
      started = [];
    },
    past: (seconds) => eventually('time to pass', async () => performance.now() - began > seconds * 1000),
    started: () => started,
    async placed(app) {
      const [pods, nodes] = await Promise.all([world.pods(NAMESPACE, app), list('/api/v1/nodes')]);
      const architectures = new Map(
        nodes.map((node) => [nameOf(node), at(node, 'metadata', 'labels', 'kubernetes.io/arch')]),
      );
      const on = new Set(pods.filter(runs).map((pod) => String(architectures.get(scheduledOn(pod) ?? ''))));
      return { all: pods.length, running: pods.filter(runs).length, on: [...on].sort() };
    },
    async messages(app, by) {
      const events = await world.list('Event', NAMESPACE);
      const said = (event: unknown) =>
        at(event, 'reportingController') === by || at(event, 'deprecatedSource', 'component') === by;
      const about = (event: unknown) => String(at(event, 'regarding', 'name')).startsWith(`${app}-`);
      return events
        .filter((event) => said(event) && about(event))
        .map((event) => `${at(event, 'reason')}: ${at(event, 'note')}`);
    },
    nodes: () => list('/api/v1/nodes'),
    async state() {
      const { stdout } = await world.cluster.kubectl(['get', 'nodepools,nodeclaims,nodes,pods', '-A', '-o', 'wide']);
      const events = await world.cluster.kubectl(['get', 'events', '-A', '--sort-by=.lastTimestamp']);
      const log = await readFile(join(world.cluster.directory, 'karpenter.out.log'), 'utf8');
      return [startedText(started), stdout, events.stdout, ...log.split('\n').slice(-LOG_LINES)].join('\n');
    },
    nodeClaims,
    eventually,
    async wipe() {
      await world.stopControllers();
      const workloads = 'deployments,daemonsets,replicasets,pods';
      await world.cluster.kubectl(['-n', NAMESPACE, 'delete', workloads, '--all', '--force', '--grace-period=0']);
      // The provider makes the node of a machine that is on its way, also where nobody waits for it any more.
      await eventually('every machine to have registered', async () => (await nodeClaims()).every(isRegistered));
      await remove(`${KARPENTER}/nodepools`);
      await eventually('Karpenter to remove its nodes', async () => {
        return (await nodeClaims()).length === 0 && (await list('/api/v1/nodes')).length === 0;
      });
      await remove(`/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`);
      await remove('/apis/events.k8s.io/v1/namespaces/default/events');
    },
    async stop() {
      stopped = true;
      await watching;
      await world.stop();
    },
  };

  /** The policy that makes nodes register like kubelets follows NodePools with a delay; until then it would do nothing. */
  async function policyWorks(pools: readonly NodePoolOptions[]): Promise<void> {
    for (const { name, architectures } of pools) {
      const labels = { 'karpenter.sh/nodepool': name, 'kubernetes.io/arch': architectures[0] };
      const spec = { taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }] };
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: `try-${name}`, labels }, spec };
      await eventually(`the policy for nodes of ${name}`, async () => {
        const { body } = await request('POST', '/api/v1/nodes?dryRun=All', node);
        return at(body, 'status', 'nodeInfo', 'architecture') === architectures[0];
      });
    }
  }
}

function isRegistered(claim: unknown): boolean {
  const conditions = listAt(claim, 'status', 'conditions');
  return conditions.some((one) => at(one, 'type') === 'Registered' && at(one, 'status') === 'True');
}

/** `3 s c-2x-arm64, 23 s c-2x-arm64`. */
export const startedText = (started: readonly Started[]): string =>
  started.map(({ seconds, type }) => `${seconds} s \`${type}\``).join(', ');
