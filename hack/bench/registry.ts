// Measures requests and time of the controller at a registry with a rate limit, beside the least that any client needs.
// Usage: npm run bench -- registry [--window SECONDS] [--embedded]
import { parseArgs } from 'node:util';
import { startEmbeddedCluster } from '../../test/simulator/embedded-cluster.ts';
import { startController } from '../../test/support/controller-process.ts';
import type { RunningController } from '../../test/support/running.ts';
import { type ImageFixture, image, multiPlatform } from '../../testimg/build.ts';
import { startCluster } from '../cluster/cluster.ts';
import { type Asked, type LimitedRegistry, startLimitedRegistry } from './limited-registry.ts';
import { type BenchCluster, createAndWatch, type Measured, prepareNamespace } from './load.ts';
import { printTable } from './table.ts';

const REPOSITORY = 'bench';
const PODS = 1_000;
const IMAGES = 200;
/** The number of single-platform images among them: each costs two requests instead of one. */
const SINGLES = IMAGES / 2;
const PER_WINDOW = 100;
const DELAY_MS = 50;
/** The fewest requests with which any client can look up images that it has never seen. */
const FEWEST = { manifests: IMAGES, blobs: SINGLES, all: IMAGES + SINGLES };
const WINDOWS = Math.ceil(FEWEST.all / PER_WINDOW);

type Row = readonly [what: string, measured: string, bound: string, ratio: string];
type Outcome = { readonly measured: Measured; readonly asked: readonly Asked[] };

/** Runs the benchmark and prints its table. */
export async function benchRegistry(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { window: { type: 'string', default: '6' }, embedded: { type: 'boolean', default: false } },
  });
  const seconds = Number(values.window);
  const cluster = values.embedded
    ? await startEmbeddedCluster({ scheduler: false, workloads: false, kubelet: false })
    : await startCluster({ kwok: false });
  const registry = await startLimitedRegistry({
    images: images(),
    repository: REPOSITORY,
    delayMs: DELAY_MS,
    perWindow: PER_WINDOW,
    windowMs: seconds * 1000,
  });
  try {
    await prepareNamespace(cluster);
    process.stderr.write(`this takes at least ${(WINDOWS - 1) * seconds} s\n`);
    const outcome = await converge(cluster, registry);
    const scale = seconds === 60 ? '' : `; a minute is scaled to ${seconds} s (--window 60 for the real one)`;
    process.stdout.write(
      `${PODS} pods of ${IMAGES} images, ${SINGLES} of them single-platform; ${values.embedded ? 'embedded' : 'real'} ` +
        `cluster; ${DELAY_MS} ms before each answer; ${PER_WINDOW} GETs in ${seconds} s, else 429${scale}\n\n`,
    );
    printTable([['what', 'measured', 'lower bound', 'ratio'], ...rows(outcome, seconds)]);
  } finally {
    await registry.stop();
    await cluster.stop();
  }
}

function images(): Map<string, ImageFixture> {
  const amd64 = { os: 'linux', architecture: 'amd64' };
  const arm64 = { os: 'linux', architecture: 'arm64' };
  return new Map(
    Array.from({ length: IMAGES }, (_, index) => {
      const note = `${index}`;
      const built = index % 2 === 0 ? multiPlatform([amd64, arm64], { note }) : image(amd64, { note });
      return [`t${index}`, built];
    }),
  );
}

/** Starts the controller, creates all pods at once, and waits until each has its toleration. */
async function converge(cluster: BenchCluster, registry: LimitedRegistry): Promise<Outcome> {
  const controller = await start(cluster, registry);
  try {
    const references = Array.from({ length: IMAGES }, (_, index) => `${registry.host}/${REPOSITORY}:t${index}`);
    const measured = await createAndWatch(cluster, {
      count: PODS,
      images: references,
      prefix: 'first',
      deadlineMs: 600_000,
    });
    return { measured, asked: registry.asked() };
  } finally {
    await controller.stop();
  }
}

function start(cluster: BenchCluster, registry: LimitedRegistry): Promise<RunningController> {
  return startController([
    '--kubeconfig',
    cluster.kubeconfig,
    '--registries.insecure',
    registry.host,
    '--leaderElection.namespace',
    'default',
    // A pod that was released without an answer would count as converged.
    '--images.unresolvable',
    'wait',
  ]);
}

function rows({ measured, asked }: Outcome, seconds: number): Row[] {
  const answered = (kind: Asked['kind']) => asked.filter(isGet(kind)).filter(({ status }) => status === 200).length;
  const refused = asked.filter(({ status }) => status === 429).length;
  const bound = (WINDOWS - 1) * seconds;
  const total = measured.totalMs / 1000;
  const late = lastAnswers(asked).map((ms) => (ms / 1000).toFixed(1));
  return [
    counted('GETs of manifests, answered', answered('manifest'), FEWEST.manifests),
    counted('GETs of config blobs, answered', answered('blob'), FEWEST.blobs),
    counted('GETs refused with 429', refused, 0),
    counted('HEADs', asked.filter(({ method }) => method === 'HEAD').length, 0),
    counted('requests in all', asked.length, FEWEST.all),
    [
      `all pods tolerate`,
      `${total.toFixed(1)} s`,
      `${bound} s (${WINDOWS} windows)`,
      bound === 0 ? '' : (total / bound).toFixed(2),
    ],
    ['last answer of each window', `after ${late.join(', ')} s`, `after ${fewestSeconds()} s at 8 at once`, ''],
  ];
}

const isGet = (kind: Asked['kind']) => (asked: Asked) => asked.method === 'GET' && asked.kind === kind;

function counted(what: string, measured: number, bound: number): Row {
  return [what, `${measured}`, `${bound}`, bound === 0 ? '' : (measured / bound).toFixed(2)];
}

/** For each window that answered anything, the time of the last request that it answered. */
function lastAnswers(asked: readonly Asked[]): number[] {
  const last = new Map<number, number>();
  for (const { window, status, method, intoWindowMs } of asked) {
    if (status === 200 && method === 'GET') last.set(window, Math.max(last.get(window) ?? 0, intoWindowMs));
  }
  return [...last].sort(([one], [other]) => one - other).map(([, ms]) => ms);
}

/** A full window, with as many requests in flight as `registries.maxInFlight` allows by default. */
function fewestSeconds(): string {
  return ((PER_WINDOW / 8) * (DELAY_MS / 1000)).toFixed(1);
}
