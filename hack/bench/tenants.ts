// Measures how a tenant's flood affects another tenant: how long the bystander waits, how much memory the controller
// uses, whether it leads throughout, the longest delay of its event loop (in CPU time), and, after large objects, how long a new
// process takes to serve the bystander. Usage: npm run bench -- tenants [--before FILE] [--only TEXT]; FILE: the
// `dist/main.js` of another version, measured in alternation with this one.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ARCHITECTURE_GATE, WEBHOOK_CONFIGURATION } from '../../src/names.ts';
import { startController } from '../../test/support/controller-process.ts';
import type { RunningController } from '../../test/support/running.ts';
import { multiPlatform } from '../../testimg/build.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { freePorts } from '../cluster/ports.ts';
import { create, FLOOD_TAGS, FLOODS, type Flood, startSilent } from './floods.ts';
import { type LimitedRegistry, startLimitedRegistry } from './limited-registry.ts';
import { quantile } from './load.ts';
import { residentOf } from './process.ts';
import { printTable } from './table.ts';
import { writeCertificate } from './webhook.ts';

const LOOP_DELAY = fileURLToPath(new URL('loop-delay.mjs', import.meta.url));
const BYSTANDER = 'bystander';
const DELAY_MS = 50;
/** The bystander's pods of one row: without the flood, and during it, one after the other. */
const PODS = 5;
/** The longest wait for a bystander. */
const PATIENCE_MS = 60_000;

type World = {
  readonly cluster: Cluster;
  readonly registry: LimitedRegistry;
  /** Registries without a request when a row begins. */
  readonly others: readonly LimitedRegistry[];
  readonly silent: string;
  readonly directory: string;
  readonly port: number;
};
type Measured = {
  readonly alone: number[];
  readonly meanwhile: number[];
  readonly peak: number;
  readonly led: boolean;
  /** The longest time without a timer in the flood, in milliseconds of CPU time of the main thread. */
  readonly loop: number;
  /** Milliseconds until a new process was ready and served a pod, beside the objects of the flood; absent for small ones. */
  readonly again?: number;
};

/** Runs the benchmark and prints its table. */
export async function benchTenants(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { before: { type: 'string' }, only: { type: 'string', default: '' } },
  });
  const bundles: [name: string, bundle?: string][] = [['after']];
  if (values.before !== undefined) bundles.unshift(['before', resolve(values.before)]);
  const cluster = await startCluster({ kwok: false });
  const directory = await mkdtemp(join(tmpdir(), 'archaware-bench-'));
  const [registry, ...others] = await Promise.all(Array.from({ length: PODS + 1 }, startRegistry));
  const silent = await startSilent();
  try {
    if (registry === undefined) throw new Error('no registry');
    const [port = 0] = await freePorts(1);
    const world: World = { cluster, registry, others, silent: silent.host, directory, port };
    await registerWebhook(world, await writeCertificate(directory));
    const rows: string[][] = [];
    for (const [index, flood] of FLOODS.entries()) {
      if (!flood.name.includes(values.only)) continue;
      for (const [version, bundle] of bundles) {
        process.stderr.write(`${flood.name}, ${version}\n`);
        rows.push([flood.name, version, ...cellsOf(await measure(world, flood, `${version}-${index}`, bundle))]);
      }
    }
    process.stdout.write(
      `real control plane, placement.mode both; ${DELAY_MS} ms before each answer of the registry; ${PODS} pods of the bystander ` +
        'without the flood and in it, each with an image that nobody has asked for\ngoal: at most 1 s more than without the flood\n\n',
    );
    printTable([
      [
        'flood',
        'version',
        'bystander alone',
        'in the flood',
        'worst',
        'worst / alone',
        'peak RSS',
        'led',
        'loop',
        'again',
      ],
      ...rows,
    ]);
  } finally {
    await cluster.stop();
    silent.stop();
    for (const each of [registry, ...others]) await each?.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

function startRegistry(): Promise<LimitedRegistry> {
  const built = multiPlatform(['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture })));
  const tags = [
    ...Array.from({ length: FLOOD_TAGS }, (_, index) => `flood${index}`),
    ...Array.from({ length: 1_000 }, (_, index) => `own${index}`),
  ];
  return startLimitedRegistry({
    images: new Map(tags.map((tag) => [tag, built])),
    repository: 'bench',
    delayMs: DELAY_MS,
    perWindow: Number.POSITIVE_INFINITY,
    windowMs: 60_000,
  });
}

/** Makes the API server call the controller on this machine. */
async function registerWebhook({ cluster, port }: World, ca: string): Promise<void> {
  const webhook = {
    name: 'pods.tenants.bench',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    failurePolicy: 'Ignore',
    timeoutSeconds: 10,
    clientConfig: { url: `https://127.0.0.1:${port}/mutate`, caBundle: Buffer.from(ca).toString('base64') },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
  };
  await cluster.apply(
    JSON.stringify({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: WEBHOOK_CONFIGURATION },
      webhooks: [webhook],
    }),
  );
}

function start(world: World, flood: Flood, bundle: string | undefined): Promise<RunningController> {
  const { cluster, registry, others, silent, directory, port } = world;
  const flags = {
    kubeconfig: cluster.kubeconfig,
    'registries.insecure': [registry, ...others]
      .map(({ host }) => host)
      .concat(silent)
      .join(),
    // The same value as in the finding.
    'registries.timeout': '5s',
    'leaderElection.namespace': 'default',
    'placement.mode': 'both',
    'webhook.enabled': 'true',
    'webhook.address': `127.0.0.1:${port}`,
    'webhook.certificates': directory,
  };
  return startController(
    Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    {
      ...(bundle === undefined ? {} : { bundle }),
      environment: {
        NODE_OPTIONS: `${flood.isLarge ? '--max-old-space-size=160 ' : ''}--import=${LOOP_DELAY}`,
        LOOP_DELAY_FILE: join(directory, 'loop-delay'),
      },
    },
  );
}

let used = 0;

async function measure(world: World, flood: Flood, id: string, bundle: string | undefined): Promise<Measured> {
  const { cluster, registry, others, silent } = world;
  const tenant = flood.isNeighbour ? `${BYSTANDER}-${id}` : `tenant-${id}`;
  const bystander = `${BYSTANDER}-${id}`;
  for (const namespace of new Set([tenant, bystander])) await createNamespace(cluster, namespace);
  let controller = await start(world, flood, bundle);
  await cluster.waitFor('a leader', async () => (await controller.metric('archaware_leader')) === 1);
  let peak = 0;
  const sampling = setInterval(() => {
    peak = Math.max(peak, memoryOf(controller.pid));
  }, 100);
  try {
    const one = async (host: string) => {
      const tag = flood.measures === 'pod' ? `bench:own${used++ % 1_000}` : `none/own:${used++}`;
      return untilServed(cluster, flood.measures, bystander, `p${used}`, `${host}/${tag}`);
    };
    const alone: number[] = [];
    for (let index = 0; index < PODS; index += 1) alone.push(await one(registry.host));
    const { request } = cluster;
    // The start of the program, which compiles it, does not count.
    controller.kill('SIGUSR2');
    const flooding = flood.run({ request, namespace: tenant, registry: registry.host, silent });
    // By then the first pods of the flood exist.
    await Promise.race([flooding, delay(2_000)]);
    const meanwhile: number[] = [];
    for (let index = 0; index < PODS; index += 1) {
      const host = flood.isNeighbour ? others[index]?.host : registry.host;
      meanwhile.push(await one(host ?? registry.host));
      if (meanwhile.at(-1) === Number.POSITIVE_INFINITY) break;
      await delay(500);
    }
    await flooding;
    const led = memoryOf(controller.pid) > 0 && !controller.logs().some((line) => line.includes('lease lost'));
    const loop = Number(await readFile(join(world.directory, 'loop-delay'), 'utf8').catch(() => Number.NaN));
    if (!flood.isLarge) return { alone, meanwhile, peak, led, loop };
    await controller.stop('SIGKILL');
    const started = performance.now();
    const next = await start(world, flood, bundle).catch(() => undefined);
    if (next === undefined) return { alone, meanwhile, peak, led, loop, again: Number.POSITIVE_INFINITY };
    controller = next;
    const isServed = Number.isFinite(await one(registry.host));
    return {
      alone,
      meanwhile,
      peak,
      led,
      loop,
      again: isServed ? performance.now() - started : Number.POSITIVE_INFINITY,
    };
  } finally {
    clearInterval(sampling);
    await controller.stop('SIGKILL');
    await cluster.request('DELETE', '/apis/coordination.k8s.io/v1/namespaces/default/leases/archaware-controller');
    for (const namespace of new Set([tenant, bystander])) {
      await cluster.request('DELETE', `/api/v1/namespaces/${namespace}/pods?gracePeriodSeconds=0`);
      await cluster.request('DELETE', `/apis/apps/v1/namespaces/${namespace}/daemonsets`);
    }
  }
}

async function createNamespace(cluster: Cluster, name: string): Promise<void> {
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  await cluster.waitFor('the default service account', async () => {
    const { status } = await cluster.request('GET', `/api/v1/namespaces/${name}/serviceaccounts/default`);
    return status === 200;
  });
}

/** Milliseconds from the creation of a pod to its toleration without the gate, or to the Event about it. */
async function untilServed(
  cluster: Cluster,
  what: Flood['measures'],
  namespace: string,
  name: string,
  image: string,
): Promise<number> {
  const started = performance.now();
  await create(cluster.request, namespace, name, [image]);
  const isServed = async () => {
    if (what === 'event') {
      const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
      const text = JSON.stringify((await cluster.request('GET', path)).body);
      return text.includes('"ImageUnresolvable"') && text.includes(`"name":"${name}"`);
    }
    const text = JSON.stringify((await cluster.request('GET', `/api/v1/namespaces/${namespace}/pods/${name}`)).body);
    return text.includes('"supported-arch"') && !text.includes(ARCHITECTURE_GATE);
  };
  while (performance.now() - started < PATIENCE_MS) {
    if (await isServed()) return performance.now() - started;
    await delay(20);
  }
  return Number.POSITIVE_INFINITY;
}

/** Returns the memory of a process in MiB; 0 if it has ended. */
function memoryOf(pid: number): number {
  try {
    return residentOf(pid) || 0;
  } catch {
    return 0;
  }
}

function cellsOf({ alone, meanwhile, peak, led, loop, again }: Measured): string[] {
  const [before, after] = [quantile(alone, 0.5), quantile(meanwhile, 0.5)];
  const worst = Math.max(...meanwhile);
  const time = (value: number) => (Number.isFinite(value) ? `${value.toFixed(0)} ms` : `> ${PATIENCE_MS / 1_000} s`);
  return [
    time(before),
    time(after),
    time(worst),
    (after / before).toFixed(1),
    `${peak.toFixed(0)} MB`,
    led ? 'yes' : 'NO',
    `${loop} ms`,
    again === undefined ? '' : time(again),
  ];
}
