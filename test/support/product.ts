/** The embedded cluster with the manifest, a registry, and commands run against both: what most tests of commands need. */
import type { Clock } from '../../src/kit/clock.ts';
import { FIXTURES, TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { type EmbeddedCluster, type EmbeddedOptions, startEmbeddedCluster } from '../simulator/embedded-cluster.ts';
import { at, type JsonObject, objects, text } from '../simulator/json.ts';
import { startTestRegistry, type TestRegistry, type TestRegistryOptions } from '../simulator/registry/registry.ts';
import type { Finished } from './controller-process.ts';
import { type InProcessOptions, runInProcess, startInProcess } from './in-process.ts';
import { manifestWithoutDeployment } from './manifest.ts';
import { patientClock } from './patient-clock.ts';
import type { RunningController } from './running.ts';
import { accessOf, imageAt, isOfInterest, objectsOf, standInFor, type World, withoutDefaults } from './world.ts';

export type ProductOptions = {
  /** Architectures, one node each, named `amd64-1` and so on. Default amd64 and arm64. */
  readonly nodes?: readonly string[];
  readonly cluster?: EmbeddedOptions;
  readonly registry?: TestRegistryOptions;
  /** How many times faster time passes for the commands. Default 5. */
  readonly speed?: number;
};

/** A world in this process: time may pass faster, and requests may fail. */
export type Product = Omit<World, 'cluster' | 'registry' | 'image' | 'run' | 'command' | 'written'> & {
  readonly cluster: EmbeddedCluster;
  readonly registry: TestRegistry;
  /** The reference of a fixture; or stores an image of a repository, and gives its reference. */
  image(tag: string): string;
  image(repository: string, platforms: readonly string[]): string;
  readonly clock: Clock;
  /** What every command gets: which cluster, and that the registry serves plain http. */
  readonly flags: readonly string[];
  run(flags?: readonly string[], options?: InProcessOptions): Promise<RunningController>;
  command(args: readonly string[], options?: InProcessOptions): Promise<Finished>;
  /** Runs a command with the rights of an administrator. */
  asAdmin(args: readonly string[], options?: InProcessOptions): Promise<Finished>;
  written(): readonly string[];
  /** The registry's requests for manifests of a repository. */
  lookUps(repository: string): number;
};

export const PODS = '/api/v1/namespaces/default/pods';

/** Starts everything but the controller; in some 50 ms. */
export async function startProduct(options: ProductOptions = {}): Promise<Product> {
  const { nodes = ['amd64', 'arm64'], speed = 5 } = options;
  const clock = patientClock(speed);
  const manifest = await manifestWithoutDeployment();
  const cluster = await startEmbeddedCluster({ manifest, ...options.cluster });
  const registry = await startTestRegistry(options.registry);
  const kubeconfig = await cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
  const running: RunningController[] = [];
  // The memory for 50,000 images is reserved at once, which takes longer than most tests do.
  const own = ['--registries.insecure', registry.host, '--images.cache.maxEntries', '1000'];
  const common = ['--kubeconfig', kubeconfig, ...own];
  for (const architecture of nodes) await cluster.createNode({ name: `${architecture}-1`, architecture });

  const objects = objectsOf(cluster);
  const stopControllers: World['stopControllers'] = async (signal) => {
    await Promise.all(running.splice(0).map((controller) => controller.stop(signal)));
  };

  const command: Product['command'] = async ([name = '', ...args], given) => {
    const words = [name, ...accessOf(args, kubeconfig), ...own, ...args];
    return withoutDefaults(await runInProcess(words, { clock, ...given }));
  };

  return {
    ...objects,
    cluster,
    registry,
    image(name, platforms?: readonly string[]) {
      if (platforms === undefined) {
        const found = FIXTURES.find(({ tag }) => tag === name);
        if (found !== undefined) registry.load(TESTIMG_REPOSITORY, name, found.build());
        return imageAt(registry.host, name);
      }
      registry.put(name, '1', platforms);
      return `${registry.host}/${name}:1`;
    },
    clock,
    flags: common,
    async run(flags = [], given = {}) {
      const words = [...accessOf(flags, kubeconfig), ...own, ...flags];
      const controller = await startInProcess(words, { clock, ...given });
      running.push(controller);
      return controller;
    },
    command,
    asAdmin: ([name = '', ...args], given) => command([name, '--kubeconfig', cluster.kubeconfig, ...args], given),
    async namespace(name, labels = {}) {
      await objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, namespace: '', labels } });
      return name;
    },
    stopControllers,
    written: () =>
      cluster
        .writes()
        .filter(({ path }) => isOfInterest(path))
        .map(({ method, path }) => `${method} ${path.split('?')[0] ?? ''}`),
    lookUps: (repository) =>
      registry.requests().filter(({ path }) => path.startsWith(`/v2/${repository}/manifests/`)).length,
    async stop() {
      await stopControllers('SIGKILL');
      await Promise.all([cluster.stop(), registry.stop()]);
    },
  };
}

/** For a suite: each of its tests has a new product, for which the one that is returned stands. */
export const productForEach = (options?: ProductOptions): Product =>
  standInFor([beforeEach, afterEach], () => startProduct(options));

/** For a suite: all of its tests have the same product. */
export const productForAll = (options?: ProductOptions): Product =>
  standInFor([before, after], () => startProduct(options));

/** Runs a Deployment of two pods and a DaemonSet on tainted nodes. Returns the controller, which leads. */
export async function settled(product: Product): Promise<RunningController> {
  const image = product.image('app', ['amd64', 'arm64']);
  await product.cluster.apply(workload('Deployment', 'web', [image], { spec: { replicas: 2 } }));
  await product.cluster.apply(workload('DaemonSet', 'agent', [image]));
  const controller = await product.run();
  await product.eventuallyTainted();
  await product.eventually('four pods that tolerate both', async () => {
    const pods = await product.list(PODS);
    return pods.length === 4 && pods.every((pod) => tolerated(pod.spec).length === 2);
  });
  return controller;
}

/** The architectures that a pod's or a template's spec tolerates by our taint. */
export function tolerated(spec: unknown): string[] {
  return objects(at(spec, 'tolerations'))
    .filter(({ key, effect }) => key === 'supported-arch' && effect === 'NoSchedule')
    .map(({ value }) => text(value))
    .sort();
}

/** A workload with one container for each image, as JSON, which is YAML. */
export function workload(
  kind: 'Deployment' | 'DaemonSet' | 'StatefulSet',
  name: string,
  images: readonly string[],
  { spec = {}, template = {} }: { readonly spec?: JsonObject; readonly template?: JsonObject } = {},
): string {
  const containers = images.map((image, index) => ({ name: `c${index}`, image }));
  return JSON.stringify({
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace: 'default' },
    spec: {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers, ...template } },
      ...spec,
    },
  });
}

/** The Deployment of an installation as JSON. `spec`: of its pods. */
export function installation(
  spec: JsonObject,
  { namespace = 'archaware', name = 'archaware-controller', replicas = 1 } = {},
): string {
  const labels = { 'app.kubernetes.io/name': 'archaware-controller' };
  return JSON.stringify({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { namespace, name, labels },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { serviceAccountName: 'archaware-controller', ...spec } },
    },
  });
}

/** The same, without pods. It mounts the ConfigMap `settings` of its namespace; `container`: its arguments and variables. */
export function configuredInstallation(
  container: JsonObject,
  where: { namespace?: string; name?: string } = {},
): string {
  const mounted = { image: 'x', volumeMounts: [{ name: 'config', mountPath: '/etc/archaware' }] };
  const containers = [{ name: 'archaware-controller', ...mounted, ...container }];
  const volumes = [{ name: 'config', configMap: { name: 'settings' } }];
  return installation({ containers, volumes }, { replicas: 0, ...where });
}
