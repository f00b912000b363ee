import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../../hack/cluster/client.ts';
import { waitFor } from '../../hack/cluster/wait.ts';
import { apply, createNode, PATIENCE_MS, succeeded, writeKubeconfig } from './client.ts';
import { indexPods, runControllers, type World } from './controllers/controllers.ts';
import { createDaemonSets } from './controllers/daemonsets.ts';
import { createDisruption, createGarbageCollector, createNodeLifecycle } from './controllers/housekeeping.ts';
import { createKubelet } from './controllers/kubelet.ts';
import { createScheduler } from './controllers/scheduler.ts';
import { createDeployments, createJobs, createReplicas, createStatefulSets } from './controllers/workloads.ts';
import { createFaults, type Faults } from './faults.ts';
import { createRest } from './http/rest.ts';
import { createHttpServer, type LoggedRequest } from './http/server.ts';
import { createWatches } from './http/watch.ts';
import type { JsonObject } from './json.ts';
import { createApi } from './objects/api.ts';
import { createRbac } from './objects/rbac.ts';
import { NAMESPACES } from './objects/resources.ts';
import { createStore } from './objects/store.ts';
import type { TestCluster } from './test-cluster.ts';
import { createWebhooks } from './webhooks/webhooks.ts';

export interface EmbeddedOptions {
  /** YAML applied at start: the roles of service accounts above all. */
  readonly manifest?: string;
  /** Default v1.37.2. */
  readonly gitVersion?: string;
  /** The admission plug-in DefaultTolerationSeconds; without it a pod may have no tolerations at all. Default true. */
  readonly defaultTolerations?: boolean;
  /** Default true. */
  readonly scheduler?: boolean;
  /** Nodes become Ready, bound pods Running. Default true. */
  readonly kubelet?: boolean;
  /** Deployments, ReplicaSets, StatefulSets, Jobs, DaemonSets make pods. Default true. */
  readonly workloads?: boolean;
  /** An image's architectures: on a node with another its containers crash. Default: everything runs. */
  readonly imagePlatforms?: (image: string) => readonly string[] | undefined;
  /** Default one minute, as on the real server. */
  readonly bookmarkPeriodMs?: number;
}

export interface PodOptions {
  readonly name: string;
  /** Default `default`. */
  readonly namespace?: string;
  /** Default one, `registry.example.com/app:1`. */
  readonly images?: readonly string[];
  readonly metadata?: JsonObject;
  /** Fields that replace those of the other options. */
  readonly spec?: JsonObject;
}

export interface EmbeddedCluster extends TestCluster {
  /** The pod as created. */
  createPod(options: PodOptions): Promise<JsonObject>;
  readonly faults: Faults & WatchFaults;
  /** Every request over HTTP since the start, or since `forgetRequests`. */
  requests(): readonly LoggedRequest[];
  /** The successful writes, dry runs apart, of one user, or of everybody but the tests' admin. */
  writes(user?: string): readonly LoggedRequest[];
  forgetRequests(): void;
  openWatches(): number;
}

export interface WatchFaults {
  closeWatches(): void;
  /** Makes watches, also new ones, send nothing and stay open; false ends that. Missed events stay missed. */
  stallWatches(stalled?: boolean): void;
  /** Ends every watch with 410 in its stream. */
  expireWatches(): void;
  /** No watch and no next page can begin before now. */
  compactHistory(): void;
}

const ADMIN = 'admin';
const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
const WORKLOADS = [createDeployments, createReplicas, createStatefulSets, createJobs, createDaemonSets];

/** Starts the simulated cluster on a free port of the loopback address, within milliseconds. */
export async function startEmbeddedCluster(options: EmbeddedOptions = {}): Promise<EmbeddedCluster> {
  const store = createStore(20_000);
  const faults = createFaults();
  const { defaultTolerations = true, gitVersion = 'v1.37.2' } = options;
  const webhooks = createWebhooks(store);
  const api = createApi(store, { defaultTolerations, daemonSetGuard: true, webhooks });
  const world: World = { store, api, pods: indexPods(store) };
  const { imagePlatforms } = options;
  const kubelet = { enabled: options.kubelet ?? true, ...(imagePlatforms ? { imagePlatforms } : {}) };
  const controllers = runControllers(store, [
    ...((options.workloads ?? true) ? WORKLOADS.map((create) => create(world)) : []),
    ...((options.scheduler ?? true) ? [createScheduler(world)] : []),
    createKubelet(world, kubelet),
    createNodeLifecycle(world),
    createGarbageCollector(world),
    createDisruption(world),
  ]);
  const watches = createWatches(store, options.bookmarkPeriodMs ?? 60_000);
  const adminToken = randomUUID();
  const users = new Map<string, string>([[adminToken, ADMIN]]);
  const addToken = (token: string, user: string) => void users.set(token, user);
  const rbac = createRbac(store);
  const answer = createRest({ store, api, rbac, watches, faults, adminUser: ADMIN, gitVersion, addToken });
  const http = createHttpServer({ faults, users, answer });
  for (const name of ['default', 'kube-node-lease', 'kube-public', 'kube-system']) {
    await api.create(NAMESPACES, '', { metadata: { name } }, { user: 'system:apiserver', manager: 'kube-apiserver' });
  }
  await http.start();
  const server = `http://127.0.0.1:${http.port()}`;
  const client = createClient(() => server, adminToken);
  const directory = await mkdtemp(join(tmpdir(), 'archaware-embedded-'));
  const { request } = client;
  const cluster: EmbeddedCluster = {
    server,
    adminToken,
    kubeconfig: await writeKubeconfig(directory, ADMIN, server, adminToken),
    request,
    waitFor: (description, condition, ms = PATIENCE_MS) => waitFor(description, condition, ms),
    apply: (yaml) => apply(request, yaml),
    createNode: (node) => createNode(request, { waitUntilReady: kubelet.enabled, ...node }),
    createPod: async (pod) => {
      const path = `/api/v1/namespaces/${pod.namespace ?? 'default'}/pods`;
      return succeeded(`pod ${pod.name}`, await request('POST', path, podOf(pod)));
    },
    async serviceAccountKubeconfig(namespace, name) {
      const token = randomUUID();
      addToken(token, `system:serviceaccount:${namespace}:${name}`);
      return writeKubeconfig(directory, `${namespace}-${name}`, server, token);
    },
    faults: Object.assign(faults, {
      closeWatches: watches.closeAll,
      stallWatches: (stalled = true) => watches.stall(stalled),
      expireWatches: watches.expireAll,
      compactHistory: () => store.compact(),
    }),
    requests: () => http.log,
    writes: (user) =>
      http.log.filter(
        (asked) =>
          WRITES.has(asked.method) &&
          asked.status < 300 &&
          !asked.path.includes('dryRun=All') &&
          (user === undefined ? asked.user !== ADMIN : asked.user === user),
      ),
    forgetRequests: () => void http.log.splice(0),
    openWatches: watches.count,
    async stopApiServer() {
      controllers.pause();
      watches.closeAll();
      await http.stop();
    },
    async startApiServer() {
      store.forgetHistory();
      await http.start();
      controllers.resume();
    },
    async stop() {
      controllers.stop();
      watches.closeAll();
      await client.close();
      await webhooks.close();
      await http.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
  if (options.manifest !== undefined) await cluster.apply(options.manifest);
  return cluster;
}

function podOf({ name, images = ['registry.example.com/app:1'], metadata = {}, spec = {} }: PodOptions): JsonObject {
  const containers = images.map((image, index) => ({ name: index === 0 ? 'app' : `app-${index}`, image }));
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec: { containers, ...spec } };
}
