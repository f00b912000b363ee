import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { request as send } from 'undici';
import { type AuditedRequest, parseAuditLog, underWay } from './audit.ts';
import { type Client, createClient, expectSuccess, type Request } from './client.ts';
import { apiServerArgs, controllerManagerArgs, etcdArgs, type Plan, prepare, schedulerArgs } from './control-plane.ts';
import { emptyDirectory } from './directory.ts';
import { openEtcd } from './etcd.ts';
import { textAt } from './json.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { type KubectlResult, runKubectl } from './kubectl.ts';
import { playedByKwok, startKwok } from './kwok.ts';
import { rememberContents } from './memory.ts';
import { nodeAddresses } from './node-config.ts';
import { nodeObjects } from './node-objects.ts';
import { createNode, type NodeOptions, setNodeArchitecture } from './nodes.ts';
import { freePorts } from './ports.ts';
import {
  type Common,
  cutPower,
  makeNodePlace,
  type NodePlace,
  nodeName,
  nodeServes,
  type RealNode,
  startContainerd,
  startKubelet,
  startProxy,
  startRuntime,
} from './real-node.ts';
import { type Component, startComponent } from './spawn.ts';
import { waitFor } from './wait.ts';

export interface ClusterOptions {
  /**
   * The directory for certificates, data and logs. Files of an earlier cluster there are removed. Default: a temporary
   * directory.
   */
  readonly directory?: string;
  /** Default: free ports. */
  readonly ports?: { readonly apiServer?: number; readonly etcd?: number };
  readonly featureGates?: Readonly<Record<string, boolean>>;
  /** More flags for kube-apiserver; the last one of a name wins. */
  readonly apiServerArgs?: readonly string[];
  /** The namespaces whose service accounts' requests are recorded; see `auditedRequests`. */
  readonly auditNamespaces?: readonly string[];
  /** `real`: a node with a kubelet and a container runtime; everything runs in its namespaces. Default: no node. */
  readonly node?: 'real';
  /** Nodes become Ready and bound pods Running. Default true. */
  readonly kwok?: boolean;
  /** Default true. */
  readonly schedulerAndManager?: boolean;
  /** Ends the start, or stops the cluster. */
  readonly signal?: AbortSignal;
}

/** A real control plane on this machine. When it is stopped, or the process ends, nothing of it is left. */
export interface Cluster {
  readonly server: string;
  /** Path of a kubeconfig with all rights. */
  readonly kubeconfig: string;
  readonly adminToken: string;
  /** Path of the certificate authority, PEM. */
  readonly caFile: string;
  readonly directory: string;
  /** Only with `node: 'real'`. */
  readonly node?: RealNode;
  /** By name: etcd, kube-apiserver, kube-scheduler, kube-controller-manager, kwok; containerd, kubelet, kube-proxy. */
  component(name: string): Component;
  kubectl(args: readonly string[], options?: { input?: string; kubeconfig?: string }): Promise<KubectlResult>;
  /** Runs `kubectl apply` as admin; throws if an object was refused. */
  apply(yaml: string): Promise<void>;
  /** Path of a kubeconfig with the account's rights, from a TokenRequest. */
  serviceAccountKubeconfig(namespace: string, name: string): Promise<string>;
  /** Sends a request as admin over kept-alive connections. */
  readonly request: Request;
  createNode(options: NodeOptions): Promise<void>;
  setNodeArchitecture(name: string, architecture: string): Promise<void>;
  readonly waitFor: typeof waitFor;
  /** Returns the requests of the service accounts of `auditNamespaces` in the order of their ends; waits for those under way. */
  auditedRequests(): Promise<AuditedRequest[]>;
  stopApiServer(): Promise<void>;
  /** Starts it on the same port and data. */
  startApiServer(): Promise<void>;
  /** Simulates a power cut of the real node: nothing on it runs, and its disk stays. The control plane goes on. */
  cutNodePower(): Promise<void>;
  /** Starts the node again after a power cut. Resolves when its daemons run, which is before the node is Ready. */
  startNode(): Promise<void>;
  /**
   * Waits until the fresh control plane has created what it needs, and remembers that: the function that is returned deletes
   * everything that has been created since, and writes back what has changed. It throws if something else is left.
   */
  remember(): Promise<() => Promise<void>>;
  /** This process no longer waits for the processes of the cluster. When it ends, it ends them too, whatever they do. */
  unref(): void;
  stop(): Promise<void>;
}

// It waits up to a minute for watches to end. This is long enough for answers in flight.
const graceMs = 1_000;

/** Starts the cluster; resolves when pods can be created in the namespace `default`. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  options.signal?.throwIfAborted();
  const directory = await emptyDirectory('cluster', options.directory);
  const plan = await planFor(directory.path, options);
  const components = new Map<string, Component>();
  const client = createClient(plan.server, plan.adminToken, plan.authority);
  let place: NodePlace | undefined;
  const stopAll = async () => {
    // All end at the same time, so that none waits for another. The data is not used again.
    await Promise.all([...components.values()].map((component) => component.stop()));
    await Promise.all([client.close(), place?.remove()]);
    await directory.remove();
  };
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= stopAll();
    return stopped;
  };
  try {
    if (plan.node) place = await makeNodePlace(directory.path);
    await startAll(plan, options, components, client.request, place);
  } catch (error) {
    // The error shows the end of the log; a directory of the caller's keeps all of it.
    await stop();
    throw error;
  }
  options.signal?.addEventListener('abort', () => void stop(), { once: true });
  return clusterOf(plan, options, components, client, stop, place);
}

async function planFor(directory: string, options: ClusterOptions): Promise<Plan> {
  const [apiServer = 0, etcd = 0, etcdPeer = 0] = await freePorts(3);
  const { featureGates = {}, apiServerArgs = [], auditNamespaces = [] } = options;
  const ports = { apiServer, etcd, ...options.ports, etcdPeer };
  const node = options.node && { name: nodeName, address: nodeAddresses.node };
  return prepare({ directory, ports, featureGates, apiServerArgs, auditNamespaces, ...(node ? { node } : {}) });
}

type Components = Map<string, Component>;

async function startAll(
  plan: Plan,
  options: ClusterOptions,
  components: Components,
  request: Request,
  node?: RealNode,
): Promise<void> {
  const add = (component: Component) => components.set(component.name, component);
  const common = commonOf(plan, options, node);
  const etcdReady = async () => (await send(`${plan.etcd}/readyz`)).statusCode === 200;
  await Promise.all([plan.etcd, plan.server].map((url) => node?.expose(Number(new URL(url).port))));
  const runtime = node && startRuntime(node, common).then(add);
  // The first failure is reported; the other component ends with the rest.
  runtime?.catch(() => undefined);
  add(await startComponent({ ...common, name: 'etcd', args: etcdArgs(plan), ready: etcdReady }));
  add(await startApiServer(plan, common, request));
  if (options.schedulerAndManager ?? true) {
    add(await startComponent({ ...common, name: 'kube-scheduler', args: schedulerArgs(plan) }));
    add(await startComponent({ ...common, name: 'kube-controller-manager', args: controllerManagerArgs(plan) }));
  }
  if (options.kwok ?? true) add(await startKwok(plan.kubeconfig('kwok'), common, node ? 'annotated' : 'all'));
  if (options.schedulerAndManager ?? true) await defaultServiceAccount(components, request, options.signal);
  if (!node) return;
  await runtime;
  await applyTo(
    plan,
    nodeObjects(node.name)
      .map((object) => JSON.stringify(object))
      .join('\n---\n'),
  );
  await startKubeletAndProxy(node, plan, common, components);
  await nodeServes(node, request, options.signal);
}

async function startKubeletAndProxy(node: RealNode, plan: Plan, common: Common, components: Components): Promise<void> {
  const started = await Promise.all([startKubelet(node, plan, common), startProxy(node, plan, common)]);
  for (const component of started) components.set(component.name, component);
}

const commonOf = ({ directory }: Plan, { signal }: ClusterOptions, node?: RealNode): Common => ({
  directory,
  ...(signal ? { signal } : {}),
  ...(node ? { enter: node.enter } : {}),
});

const startApiServer = (plan: Plan, common: Common, request: Request) =>
  startComponent({
    ...common,
    name: 'kube-apiserver',
    args: apiServerArgs(plan),
    ready: async () => (await request('GET', '/readyz')).status === 200,
  });

const kubectlCache = ({ directory }: Plan) => join(directory, 'kubectl-cache');

const kubectlOf = (plan: Plan): Cluster['kubectl'] => {
  const common = { kubeconfig: plan.kubeconfig('admin'), cacheDirectory: kubectlCache(plan) };
  return (args, given) => runKubectl(args, { ...common, ...given });
};

async function applyTo(plan: Plan, yaml: string): Promise<void> {
  const { code, stderr } = await kubectlOf(plan)(['apply', '-f', '-'], { input: yaml });
  if (code !== 0) throw new Error(`kubectl apply: ${stderr.trim()}`);
}

/** A pod is refused if its namespace has no `default` account; the controller manager creates that account. */
async function defaultServiceAccount(components: Components, request: Request, signal?: AbortSignal): Promise<void> {
  const path = '/api/v1/namespaces/default/serviceaccounts/default';
  const found = async () => {
    const ended = [...components.values()].find(({ running }) => !running);
    if (ended) return ended;
    return (await request('GET', path)).status === 200 && 'found';
  };
  const result = await waitFor('the service account "default"', found, 30_000, signal);
  if (result !== 'found') throw new Error(`${result.name} ended right after its start`);
}

function clusterOf(
  plan: Plan,
  options: ClusterOptions,
  components: Components,
  { request }: Client,
  stop: () => Promise<void>,
  node?: RealNode,
): Cluster {
  const { server, directory, adminToken } = plan;
  let forgotten = 0;
  const component = (name: string) => {
    const found = components.get(name);
    if (!found) throw new Error(`this cluster has no ${name}, only ${[...components.keys()].join(', ')}`);
    return found;
  };
  const realNode = () => {
    if (node) return node;
    throw new Error("this cluster has no real node: startCluster({ node: 'real' })");
  };
  return {
    server,
    kubeconfig: plan.kubeconfig('admin'),
    adminToken,
    caFile: join(directory, 'ca.crt'),
    directory,
    ...(node ? { node } : {}),
    request,
    waitFor,
    kubectl: kubectlOf(plan),
    component,
    apply: (yaml) => applyTo(plan, yaml),
    serviceAccountKubeconfig: (namespace, name) => serviceAccountKubeconfig(plan, request, namespace, name),
    createNode: (created) => createNode(request, node ? { ...created, annotations: playedByKwok } : created),
    setNodeArchitecture: (name, architecture) => setNodeArchitecture(request, name, architecture),
    auditedRequests: async () => (await auditedRequests(directory)).slice(forgotten),
    stopApiServer: () => component('kube-apiserver').stop(graceMs),
    async startApiServer() {
      components.set('kube-apiserver', await startApiServer(plan, commonOf(plan, options, node), request));
    },
    async cutNodePower() {
      await Promise.all(['kubelet', 'kube-proxy', 'containerd'].map((name) => component(name).stop()));
      await cutPower(realNode());
    },
    async startNode() {
      const common = commonOf(plan, options, realNode());
      components.set('containerd', await startContainerd(realNode(), common));
      await startKubeletAndProxy(realNode(), plan, common, components);
    },
    async remember() {
      const memory = await rememberContents(openEtcd(plan.etcd), request);
      return async () => {
        await memory.restore();
        await rm(kubectlCache(plan), { recursive: true, force: true });
        forgotten = (await auditedRequests(directory)).length;
      };
    },
    unref() {
      for (const each of components.values()) each.unref();
    },
    stop,
  };
}

async function auditedRequests(directory: string): Promise<AuditedRequest[]> {
  const read = () => readFile(join(directory, 'audit.log'), 'utf8').catch(() => '');
  const begun = underWay(await read(), Date.now());
  return waitFor('the requests under way', async () => {
    const log = await read();
    const still = underWay(log, Date.now());
    return ![...begun].some((id) => still.has(id)) && parseAuditLog(log);
  });
}

async function serviceAccountKubeconfig(plan: Plan, request: Request, namespace: string, name: string) {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const wanted = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 86_400 } };
  const body = expectSuccess(`token of ${namespace}/${name}`, await request('POST', path, wanted));
  const user = `system:serviceaccount:${namespace}:${name}`;
  const file = join(plan.directory, `${namespace}-${name}.kubeconfig`);
  return writeKubeconfig(file, { ...plan, token: textAt(body, 'status', 'token'), user });
}
