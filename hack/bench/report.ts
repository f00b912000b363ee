// Measures `report` on a big cluster beside the registry's answers alone: the same images, with as many requests in flight.
// Usage: npm run bench -- report [--pods N] [--images N]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Agent, fetch } from 'undici';
import { type EmbeddedCluster, startEmbeddedCluster } from '../../test/simulator/embedded-cluster.ts';
import { type ImageFixture, image, multiPlatform } from '../../testimg/build.ts';
import { startLimitedRegistry } from './limited-registry.ts';
import { printTable } from './table.ts';

const REPOSITORY = 'bench';
const DELAY_MS = 50;
/** The default of `registries.maxInFlight`. */
const IN_FLIGHT = 8;
const GOAL_MB = 256;
const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** As many bytes as `managedFields`, status and volumes of a pod usually are. */
const BALLAST = 'x'.repeat(6_000);

/** Runs the benchmark and prints its table. */
export async function benchReport(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { pods: { type: 'string', default: '10000' }, images: { type: 'string', default: '500' } },
  });
  const [pods, count] = [Number(values.pods), Number(values.images)];
  const cluster = await startEmbeddedCluster({ scheduler: false, workloads: false, kubelet: false });
  const registry = await startLimitedRegistry({
    images: images(count),
    repository: REPOSITORY,
    delayMs: DELAY_MS,
    perWindow: 1_000_000,
    windowMs: 1_000,
  });
  try {
    process.stderr.write(`creating ${pods} pods\n`);
    await createPods(cluster, registry.host, pods, count);
    const alone = await answersAlone(registry.host, count);
    const whole = await run(
      ['report', '--kubeconfig', cluster.kubeconfig, '--to', 'arm64', '-o', 'json'],
      registry.host,
    );
    const ratio = (whole.seconds / alone).toFixed(2);
    process.stdout.write(`${pods} pods of ${count} images; embedded cluster; ${DELAY_MS} ms before each answer\n\n`);
    printTable([
      ['what', 'report', 'answers alone', 'ratio', 'goal'],
      ['time, s', whole.seconds.toFixed(1), alone.toFixed(1), ratio, ''],
      ['memory at its peak, MB', String(whole.megabytes), '', '', `<= ${GOAL_MB}`],
    ]);
  } finally {
    await registry.stop();
    await cluster.stop();
  }
}

function images(count: number): Map<string, ImageFixture> {
  const [amd64, arm64] = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
  if (amd64 === undefined || arm64 === undefined) throw new Error('no platforms');
  return new Map(
    Array.from({ length: count }, (_, index) => {
      const note = `${index}`;
      const platforms = index % 3 === 0 ? [amd64] : [amd64, arm64];
      return [`t${index}`, index % 10 === 0 ? image(amd64, { note }) : multiPlatform(platforms, { note })];
    }),
  );
}

/** Creates bare pods, of which the report keeps most: pods of known owners are dropped as they arrive. */
async function createPods(cluster: EmbeddedCluster, registry: string, pods: number, count: number): Promise<void> {
  for (let index = 0; index < pods; index += 1) {
    const metadata = { name: `p${index}`, annotations: { ballast: BALLAST } };
    const resources = { requests: { cpu: '100m', memory: '128Mi' } };
    const containers = [{ name: 'main', image: `${registry}/${REPOSITORY}:t${index % count}`, resources }];
    await cluster.request('POST', '/api/v1/namespaces/default/pods', { metadata, spec: { containers } });
  }
}

/** Returns the seconds that the manifests take, with nothing around them. */
async function answersAlone(registry: string, count: number): Promise<number> {
  const dispatcher = new Agent({ connections: IN_FLIGHT });
  const waiting = Array.from({ length: count }, (_, index) => index);
  const started = performance.now();
  const ask = async () => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const url = `http://${registry}/v2/${REPOSITORY}/manifests/t${next}`;
      const accept = 'application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json';
      await (await fetch(url, { dispatcher, headers: { accept } })).arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, ask));
  await dispatcher.close();
  return (performance.now() - started) / 1000;
}

/** Runs the built program; returns how long it took, and the most memory that it had (VmHWM). */
async function run(args: readonly string[], registry: string): Promise<{ seconds: number; megabytes: number }> {
  const started = performance.now();
  const child = spawn(process.execPath, [MAIN, ...args, '--registries.insecure', registry], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let megabytes = 0;
  const look = setInterval(() => {
    megabytes = Math.max(megabytes, peakOf(child.pid ?? 0));
  }, 20);
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')]);
  clearInterval(look);
  if (child.exitCode !== 0) throw new Error(`report ended with ${child.exitCode}: ${output.slice(0, 500)}`);
  return { seconds: (performance.now() - started) / 1000, megabytes };
}

function peakOf(pid: number): number {
  try {
    const [, kilobytes = '0'] = /VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Math.round(Number(kilobytes) / 1024);
  } catch {
    return 0;
  }
}
