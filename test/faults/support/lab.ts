/** A cluster with objects of others, a registry that can fail, and replicas of the built controller. */
import { type Cluster, startCluster } from '../../../hack/cluster/cluster.ts';
import { createReplicas, type Replicas } from '../../e2e/support/replicas.ts';
import { type EmbeddedCluster, startEmbeddedCluster } from '../../simulator/embedded-cluster.ts';
import { at, type JsonObject, object, objects, text } from '../../simulator/json.ts';
import { RESOURCES } from '../../simulator/objects/resources.ts';
import { startTestRegistry, type TestRegistry } from '../../simulator/registry/registry.ts';
import { manifestWithoutDeployment } from '../../support/manifest.ts';
import { daemonSet, deployment, type KubernetesObject } from '../../support/workloads.ts';
import { objectsOf, pathOf } from '../../support/world.ts';
import { type Components, createComponents } from './components.ts';
import type { Dice } from './dice.ts';
import { type Foreign, foreignOf, isCompared, isMadeByUs, isOfStatus, keyOf } from './foreign.ts';
import { createLoad, type Load } from './load.ts';

import { KIND_LABEL, wrongTaints, wrongTolerations } from './rules.ts';

export type Lab = {
  readonly cluster: AnyCluster;
  /** Only the real control plane. */
  readonly real: Cluster | undefined;
  /** Its processes; only the real control plane. */
  readonly components: Components | undefined;
  /** Only the simulator. */
  readonly simulated: EmbeddedCluster | undefined;
  readonly registry: TestRegistry;
  readonly replicas: Replicas;
  /** Makes a namespace for a load. `host`: the name under which the images have the registry. */
  load(dice: Dice, host?: string): Promise<Load>;
  /** Removes a load; nothing of it is looked at from then on. */
  finish(load: Load): Promise<void>;
  /** Everything of others, now. */
  foreign(): Promise<Foreign>;
  /** What is not as the rules say, in sentences; empty when all is. */
  wrong(load?: Load): Promise<string[]>;
  /** Objects that archaware made and should not have. */
  strangers(): Promise<string[]>;
  eventually<T>(what: string, condition: () => Promise<T | false | undefined>): Promise<T>;
  stop(): Promise<void>;
};

/** How a problem begins that Kubernetes' own controllers are to solve, which create the pods of a Deployment. */
export const ABSENT = 'not all pods are there';
/** How long a test waits for the right state; it is recorded how long it took. */
export const DEADLINE_MS = 75_000;
/** Short, so that many faults fit into a run. The default of the program is 15 s. */
export const LEASE_SECONDS = 3;
type AnyCluster = Cluster | EmbeddedCluster;
const COMPARED = RESOURCES.filter(({ plural }) => isCompared(plural));

/** Starts the control plane that `on` names, with nodes and workloads, but without replicas. */
export async function startLab(on: 'control plane' | 'simulator'): Promise<Lab> {
  if (on === 'simulator') {
    const simulated = await startEmbeddedCluster();
    return labOf(simulated, { simulated });
  }
  const real = await startCluster();
  return labOf(real, { real });
}

async function labOf(
  cluster: AnyCluster,
  { real, simulated }: { real?: Cluster; simulated?: EmbeddedCluster },
): Promise<Lab> {
  const registry = await startTestRegistry();
  await cluster.apply(await manifestWithoutDeployment());
  const kubeconfig = await cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
  const flags = [
    ...['--registries.insecure', registry.host, '--leaderElection.leaseDuration', `${LEASE_SECONDS}s`],
    // No guess about an image may hide that its lookup was forgotten.
    ...['--images.fallbackAfter', '1h', '--images.cache.maxEntries', '1000'],
  ];
  const replicas = createReplicas(cluster, kubeconfig, flags);
  const components = real && createComponents(real);
  const finished = new Set<string>();
  let loads = 0;

  const list = async (apiVersion: string, plural: string): Promise<readonly JsonObject[]> => {
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { status, body } = await cluster.request('GET', `${root}/${plural}`);
    if (status >= 300) throw new Error(`list of ${plural}: ${status}`);
    return objects(at(body, 'items')).filter((item) => {
      const name = plural === 'namespaces' ? 'name' : 'namespace';
      return !finished.has(text(at(item, 'metadata', name)));
    });
  };

  async function create(item: KubernetesObject): Promise<JsonObject | undefined> {
    const { kind, metadata } = item;
    if (kind !== 'Pod' && kind !== 'Deployment' && kind !== 'DaemonSet') throw new Error(`no path for ${kind}`);
    const path = pathOf(kind, metadata.namespace);
    const answer = await cluster.request('POST', path, item).catch(() => undefined);
    if (answer === undefined || answer.status >= 500 || answer.status === 429) return undefined;
    if (answer.status === 201) return object(answer.body);
    // It was made by a request whose answer was lost.
    if (answer.status === 409) return object((await cluster.request('GET', `${path}/${metadata.name}`)).body);
    throw new Error(`${kind} ${metadata.name}: ${answer.status} ${text(at(answer.body, 'message'))}`);
  }

  const { namespace } = objectsOf(cluster, DEADLINE_MS);

  async function wrong(load?: Load): Promise<string[]> {
    const [pods, nodes, daemonSets] = await Promise.all([
      list('v1', 'pods'),
      list('v1', 'nodes'),
      list('apps/v1', 'daemonsets'),
    ]);
    const stay = pods.filter((pod) => at(pod, 'metadata', 'deletionTimestamp') === undefined);
    const found = [
      ...stay.map((pod) => wrongTolerations(pod, pod.spec, at(pod, 'metadata', 'labels'))),
      ...daemonSets.map((set) =>
        wrongTolerations(set, at(set, 'spec', 'template', 'spec'), at(set, 'spec', 'template', 'metadata', 'labels')),
      ),
      ...nodes.map(wrongTaints),
    ].filter((problem) => problem !== undefined);
    if (load !== undefined) {
      const there = stay.filter((pod) => at(pod, 'metadata', 'namespace') === load.namespace).length;
      if (there !== load.pods) found.push(`${ABSENT}: ${there} of ${load.pods} in ${load.namespace}`);
    }
    if ((await replicas.leader()) === undefined) found.push('there is not exactly one leader');
    return found;
  }

  await populate(cluster, registry, namespace, create);
  return {
    cluster,
    real,
    components,
    simulated,
    registry,
    replicas,
    async load(dice, host) {
      const name = `load-${++loads}`;
      await namespace(name);
      return createLoad({ namespace: name, dice, registry, create, ...(host ? { host } : {}) });
    },
    async finish(load) {
      await cluster.request('DELETE', pathOf('Namespace', '', load.namespace));
      finished.add(load.namespace);
    },
    async foreign() {
      const lists = await Promise.all(
        COMPARED.map(async ({ apiVersion, plural }) =>
          (await list(apiVersion, plural)).map((item) => [keyOf(plural, item), foreignOf(item)] as const),
        ),
      );
      return new Map(lists.flat().filter(([key]) => !isOfStatus(key)));
    },
    wrong,
    async strangers() {
      const written = new Set(['pods', 'nodes', 'daemonsets']);
      const lists = await Promise.all(
        COMPARED.filter(({ plural }) => !written.has(plural)).map(async ({ apiVersion, plural }) =>
          (await list(apiVersion, plural)).filter(isMadeByUs).map((item) => keyOf(plural, item)),
        ),
      );
      return lists.flat().filter((key) => !isOfStatus(key));
    },
    eventually: (what, condition) => cluster.waitFor(what, condition, DEADLINE_MS),
    async stop() {
      await Promise.all([...replicas.all()].map((replica) => replicas.end(replica)));
      await components?.stop();
      await Promise.all([cluster.stop(), registry.stop()]);
    },
  };
}

/** Nodes and workloads of others that are there from the beginning, with fields that archaware must leave alone. */
async function populate(
  cluster: AnyCluster,
  registry: TestRegistry,
  namespace: (name: string) => Promise<unknown>,
  create: (item: KubernetesObject) => Promise<unknown>,
): Promise<void> {
  const theirs = { labels: { 'example.com/zone': 'a' } };
  const dedicated = { key: 'dedicated', value: 'shop', effect: 'PreferNoSchedule' };
  await Promise.all([
    cluster.createNode({ name: 'amd64-1', architecture: 'amd64' }),
    cluster.createNode({ name: 'arm64-1', architecture: 'arm64' }),
    cluster.createNode({ name: 'arm64-2', architecture: 'arm64', ...theirs, taints: [dedicated] }),
  ]);
  await namespace('base');
  registry.put('base/both', '1', ['amd64', 'arm64']);
  const images = [`${registry.host}/base/both:1`];
  const labels = { [KIND_LABEL]: 'both' };
  await create(deployment('base', 'web', { images, labels, replicas: 3 }));
  await create(daemonSet('base', 'agent', { images, labels, tolerations: [{ key: 'dedicated', operator: 'Exists' }] }));
}
