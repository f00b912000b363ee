import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { multiPlatform } from '../../testimg/build.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { freePorts } from '../cluster/ports.ts';
import { binaries, type Component, startComponent } from '../cluster/spawn.ts';
import { startLimitedRegistry } from './limited-registry.ts';
import { quantile } from './load.ts';
import { residentOf } from './process.ts';
import type { Measured } from './result.ts';
import { sendAllYouCan, sendAtRate, warmUp } from './review-load.ts';
import { writeCertificate } from './webhook.ts';

const NOE = 'noe';
/** Noe has no flag for it. */
const NOE_PORT = 8443;
/** review-load.ts opens its connections with reviews of `bench.invalid/first:1`, and Noe answers only what it can look up. */
const [OPENING, REPOSITORY, OPENING_TAG] = ['bench.invalid', 'first', '1'];
const IMAGES = 20;
/** Few, because Noe may answer only 20 in a second (docs/performance.md). */
const REVIEWS = 400;
const SECONDS = 10;

/** The figures of other programs, by the row that they belong to. The star: from notes (docs/performance.md), not this run. */
const NOTES: ReadonlyMap<string, string> = new Map([
  ['pods at once, warm', 'MTO 79 pods/s*'],
  ['most memory in the bursts (VmHWM)', 'MTO 135 MB*'],
  ['most reviews/s, warm', 'Noe 20*'],
  ['200 reviews/s, warm, p50', 'Noe 44 s*'],
  ['gated to released at 20 pods/s, warm, p50', 'MTO 60 ms*'],
]);

type Noe = { readonly perSecond: number; readonly p50Ms: number; readonly aloneMs: number; readonly memory: number };

/**
 * Adds the figures of other programs to the rows: those of Noe from a run on this machine if hack/bench/build-peers.sh has built
 * it, the others from notes. MTO: multiarch-tuning-operator.
 */
export async function withPeers({ rows, figures }: Measured, cluster: Cluster): Promise<Measured> {
  const noe = existsSync(join(binaries(), NOE)) ? await measureNoe(cluster).catch(giveUp) : undefined;
  const measured = new Map(noe === undefined ? [] : cellsOf(noe));
  const peerOf = (what: string) =>
    [...new Map([...NOTES, ...measured])].find(([part]) => what.endsWith(part))?.[1] ?? '';
  return { rows: rows.map((each) => ({ ...each, peers: peerOf(each.what) })), figures: { figures, noe } };
}

/** A program of others that does not work must not cost the figures of the whole run. */
function giveUp(error: unknown): undefined {
  process.stderr.write(`Noe is not measured: ${error instanceof Error ? error.message : String(error)}\n`);
}

function cellsOf({ perSecond, p50Ms, aloneMs, memory }: Noe): [string, string][] {
  const waiting = `${p50Ms.toFixed(1)} ms (${REVIEWS} reviews; at 5 reviews/s ${aloneMs.toFixed(1)} ms)`;
  return [
    ['most reviews/s, warm', `Noe ${perSecond.toFixed(0)}, ${memory.toFixed(0)} MiB`],
    ['200 reviews/s, warm, p50', `Noe ${waiting}`],
  ];
}

async function measureNoe(cluster: Cluster): Promise<Noe> {
  process.stderr.write('Noe\n');
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
