/** The embedded cluster with the manifest, a registry, and commands run against both: what most tests of commands need. */
import type { Clock } from '../../src/kit/clock.ts';
import { FIXTURES } from '../../testimg/fixtures.ts';
import { type EmbeddedCluster, type EmbeddedOptions, startEmbeddedCluster } from '../simulator/embedded-cluster.ts';
import type { LoggedRequest } from '../simulator/http/server.ts';
import { at, type JsonObject, object, objects, text } from '../simulator/json.ts';
import {
  type PutOptions,
  startTestRegistry,
  type TestRegistry,
  type TestRegistryOptions,
} from '../simulator/registry/registry.ts';
import type { Finished } from './controller-process.ts';
import { fastClock, type InProcessOptions, runInProcess, startInProcess } from './in-process.ts';
import { manifestWithoutDeployment } from './manifest.ts';
import type { RunningController } from './running.ts';

export type ProductOptions = {
  /** Architectures, one node each, named `amd64-1` and so on. Default amd64 and arm64. */
  readonly nodes?: readonly string[];
  readonly cluster?: EmbeddedOptions;
  readonly registry?: TestRegistryOptions;
  /** How many times faster time passes for the commands. Default 5. */
  readonly speed?: number;
};

export type Product = {
  readonly cluster: EmbeddedCluster;
  readonly registry: TestRegistry;
  /** Stores an image and gives its reference. */
  image(repository: string, platforms: readonly string[], options?: PutOptions): string;
  /** Stores an image of the table in testimg/fixtures.ts and gives its reference. */
  fixture(tag: string): string;
  readonly clock: Clock;
  /** What every command gets: which cluster, and that the registry serves plain http. */
  readonly flags: readonly string[];
  /** Runs the controller in this process until `stop`; resolves when it is ready. */
  run(flags?: readonly string[], options?: InProcessOptions): Promise<RunningController>;
  /** Runs another command to its end, in this process. The line that names no configuration of the cluster is left out of stderr. */
  command(args: readonly string[], options?: InProcessOptions): Promise<Finished>;
  /** The body of a success. */
  get(path: string): Promise<JsonObject>;
  list(path: string): Promise<readonly JsonObject[]>;
  /** A merge patch, or a JSON Patch where it is a list, by the tests' admin. Gives the object. */
  patch(path: string, body: unknown): Promise<JsonObject>;
  eventually<T>(what: string, condition: () => Promise<T | false | undefined>): Promise<T>;
  /** Waits until a pod of `default` tolerates exactly these architectures by our taint, and gives it. */
  eventuallyTolerates(pod: string, ...architectures: readonly string[]): Promise<JsonObject>;
  /** Waits until every node carries the taint of its architecture. */
  eventuallyTainted(): Promise<void>;
  /** Waits for one of our Events whose note is like this, in the namespace of its object. */
  eventuallyTold(reason: string, note: RegExp, namespace?: string): Promise<string>;
  /** What the controllers wrote, leases and Events apart: `PATCH /api/v1/nodes/amd64-1`. */
  written(): string[];
  /** The registry's requests for manifests of a repository. */
  lookUps(repository: string): number;
  stop(): Promise<void>;
};

export const PODS = '/api/v1/namespaces/default/pods';
/** A test waits this long for what should be there in a moment: a machine may be busy. */
export const DEADLINE_MS = 20_000;

/** Starts everything but the controller; in some 50 ms. */
export async function startProduct(options: ProductOptions = {}): Promise<Product> {
  const { nodes = ['amd64', 'arm64'], speed = 5 } = options;
  const clock = fastClock(speed);
  const manifest = await manifestWithoutDeployment();
  const cluster = await startEmbeddedCluster({ manifest, ...options.cluster });
  const registry = await startTestRegistry(options.registry);
  const kubeconfig = await cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
  const running: RunningController[] = [];
  // The memory for 50,000 images is reserved at once, which takes longer than most tests do.
  const common = [
    ...['--kubeconfig', kubeconfig, '--registries.insecure', registry.host],
    ...['--images.cache.maxEntries', '1000'],
  ];
  for (const architecture of nodes) await cluster.createNode({ name: `${architecture}-1`, architecture });

  const succeed = async (method: 'GET' | 'PATCH', path: string, body?: unknown): Promise<JsonObject> => {
    const answer = await cluster.request(method, path, body);
    if (answer.status >= 300)
      throw new Error(`${method} ${path}: ${answer.status} ${text(at(answer.body, 'message'))}`);
    return object(answer.body);
  };
  const get = (path: string) => succeed('GET', path);
  const list = async (path: string) => objects((await get(path)).items);
  const eventually: Product['eventually'] = (what, condition) => cluster.waitFor(what, condition, DEADLINE_MS);

  return {
    cluster,
    registry,
    image(repository, platforms, putOptions) {
      registry.put(repository, '1', platforms, putOptions);
      return `${registry.host}/${repository}:1`;
    },
    fixture(tag) {
      const found = FIXTURES.find((fixture) => fixture.tag === tag);
      if (found === undefined) throw new Error(`there is no fixture ${tag}`);
      registry.load('fixtures', tag, found.build());
      return `${registry.host}/fixtures:${tag}`;
    },
    clock,
    flags: common,
    async run(flags = [], own = {}) {
      const controller = await startInProcess([...common, ...flags], { clock, ...own });
      running.push(controller);
      return controller;
    },
    async command([name = '', ...args], own) {
      const finished = await runInProcess([name, ...common, ...args], { clock, ...own });
      return { ...finished, stderr: finished.stderr.replace(/^configuration: defaults; no Deployment .*\n/, '') };
    },
    get,
    list,
    patch: (path, body) => succeed('PATCH', path, body),
    eventually,
    eventuallyTolerates: (name, ...architectures) =>
      eventually(`pod ${name} to tolerate ${architectures.join(', ') || 'nothing'}`, async () => {
        const pod = await get(`${PODS}/${name}`);
        return tolerated(pod.spec).join() === [...architectures].sort().join() && pod;
      }),
    async eventuallyTainted() {
      await eventually('every node to be tainted', async () => {
        const found = await list('/api/v1/nodes');
        return found.every((node) => taintsOf(node).join() === text(at(node, 'status', 'nodeInfo', 'architecture')));
      });
    },
    eventuallyTold: (reason, note, namespace = 'default') =>
      eventually(`an Event ${reason} like ${note}`, async () => {
        const events = await list(`/apis/events.k8s.io/v1/namespaces/${namespace}/events`);
        return events
          .filter((event) => event.reason === reason)
          .map((event) => text(event.note))
          .find((told) => note.test(told));
      }),
    written: () =>
      cluster
        .writes()
        .filter(isOfInterest)
        .map(({ method, path }) => `${method} ${path.split('?')[0] ?? ''}`),
    lookUps: (repository) =>
      registry.requests().filter(({ path }) => path.startsWith(`/v2/${repository}/manifests/`)).length,
    async stop() {
      await Promise.all(running.map((controller) => controller.stop('SIGKILL')));
      await Promise.all([cluster.stop(), registry.stop()]);
    },
  };
}

/** The architectures that a pod's or a template's spec tolerates by our taint. */
export function tolerated(spec: unknown): string[] {
  return objects(at(spec, 'tolerations'))
    .filter(({ key, effect }) => key === 'supported-arch' && effect === 'NoSchedule')
    .map(({ value }) => text(value))
    .sort();
}

/** The values of our taint on a node. */
export function taintsOf(node: JsonObject): string[] {
  return objects(at(node, 'spec', 'taints'))
    .filter(({ key }) => key === 'supported-arch')
    .map(({ value }) => text(value));
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

function isOfInterest({ path }: LoggedRequest): boolean {
  // The dry runs that try the protection of DaemonSets write nothing.
  return !/\/(leases|events)(\/|\?|$)/.test(path) && !path.includes('fieldManager=archaware-probe');
}
