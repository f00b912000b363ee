import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { multiPlatform } from '../../../testimg/build.ts';
import type { Cluster } from '../../cluster/cluster.ts';
import { freePorts } from '../../cluster/ports.ts';
import { type Component, startComponent } from '../../cluster/spawn.ts';
import { startLimitedRegistry } from '../limited-registry.ts';
import { quantile } from '../load.ts';
import { residentOf } from '../process.ts';
import { sendAllYouCan, sendAtRate, warmUp } from '../review-load.ts';
import { writeCertificate } from '../webhook.ts';

/** The name of its binary. */
export const NOE = 'noe';
/** Noe has no flag for it. */
const NOE_PORT = 8443;
/** review-load.ts opens its connections with reviews of `bench.invalid/first:1`, and Noe answers only what it can look up. */
const [OPENING, REPOSITORY, OPENING_TAG] = ['bench.invalid', 'first', '1'];
const IMAGES = 20;
/** Few, because Noe may answer only 20 in a second (docs/development/performance.md). */
const REVIEWS = 400;
const SECONDS = 10;

/** Delays in milliseconds, memory in MiB (VmRSS). */
export type NoeFigures = {
  readonly perSecond: number;
  /** Of the reviews at 200 in a second; `aloneMs` of those at 5 in a second. */
  readonly p50Ms: number;
  readonly reviews: number;
  readonly aloneMs: number;
  readonly memory: number;
};

/** Measures the webhook with images that it knows. */
export async function measureNoe(cluster: Cluster): Promise<NoeFigures> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-bench-'));
  const ca = await writeCertificate(directory);
  const [cert, key] = await Promise.all(['tls.crt', 'tls.key'].map((name) => readFile(join(directory, name), 'utf8')));
  const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
  const built = multiPlatform(platforms);
  const registry = await startLimitedRegistry({
    images: new Map(
      [OPENING_TAG, ...Array.from({ length: IMAGES }, (_, index) => `t${index}`)].map((tag) => [tag, built]),
    ),
    repository: REPOSITORY,
    delayMs: 0,
    perWindow: Number.POSITIVE_INFINITY,
    windowMs: 1_000,
    tls: { cert: cert ?? '', key: key ?? '' },
  });
  let noe: Component | undefined;
  try {
    noe = await startNoe(cluster, directory, registry.host);
    const target = { port: NOE_PORT, ca };
    const images = Array.from({ length: IMAGES }, (_, index) => `${registry.host}/${REPOSITORY}:t${index}`);
    await warmUp(target, images);
    const alone = await sendAtRate(target, { images, perSecond: 5, count: 50 });
    const most = await sendAllYouCan(target, { images, seconds: SECONDS });
    const steady = await sendAtRate(target, { images, perSecond: 200, count: REVIEWS });
    return {
      perSecond: most.perSecond,
      p50Ms: quantile(steady.delays, 0.5),
      reviews: REVIEWS,
      aloneMs: quantile(alone.delays, 0.5),
      memory: residentOf(noe.pid),
    };
  } finally {
    await noe?.stop();
    await registry.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function startNoe(cluster: Cluster, directory: string, registry: string): Promise<Component> {
  const [metrics = 0, health = 0] = await freePorts(2);
  return startComponent({
    name: NOE,
    directory,
    args: [
      `--cert-dir=${directory}`,
      '--cluster-schedulable-archs=amd64,arm64',
      `--registry-proxies=${OPENING}=${registry}`,
      `--metrics-addr=127.0.0.1:${metrics}`,
      `--health-probe-addr=127.0.0.1:${health}`,
    ],
    // It trusts the authority of the registry.
    env: { KUBECONFIG: cluster.kubeconfig, SSL_CERT_FILE: join(directory, 'ca.crt') },
    ready: async () => (await request(`http://127.0.0.1:${health}/readyz`)).statusCode === 200,
  });
}
