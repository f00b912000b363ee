// Measures `report` on a big cluster beside the registry's answers alone: the same images, with as many requests in flight.
// Usage: npm run bench -- report [--pods N] [--images N] [--json FILE]
import { Agent, fetch } from 'undici';
import { type EmbeddedCluster, startEmbeddedCluster } from '../../test/simulator/embedded-cluster.ts';
import { startTestRegistry } from '../../test/simulator/registry/registry.ts';
import { runToEnd } from './process.ts';
import { judge, type Measured, row, runBenchmark } from './result.ts';

const REPOSITORY = 'bench';
const DELAY_MS = 50;
/** The default of `registries.maxInFlight`. */
const IN_FLIGHT = 8;
const GOAL_MIB = 256;
/** The size that is measured unless another one is given. */
export const REPORT = { pods: 10_000, images: 500 };
/** As many bytes as `managedFields`, status and volumes of a pod usually are. */
const BALLAST = 'x'.repeat(6_000);

/** Runs the benchmark and prints its table. */
export async function benchReport(args: string[]): Promise<void> {
  await runBenchmark('report', args, REPORT, measureReport);
}

/** Runs `report` on this many bare pods of this many images. */
export async function measureReport({ pods, images: count }: typeof REPORT): Promise<Measured> {
  const cluster = await startEmbeddedCluster({ scheduler: false, workloads: false, kubelet: false });
  const registry = await startTestRegistry();
  registry.inject({ kind: 'delay', ms: DELAY_MS });
  for (let index = 0; index < count; index += 1) {
    const [single, platforms] = [index % 10 === 0, index % 3 === 0 ? ['amd64'] : ['amd64', 'arm64']];
    registry.put(REPOSITORY, `t${index}`, single ? ['amd64'] : platforms, { single, note: `${index}` });
  }
  try {
    process.stderr.write(`report: creating ${pods} pods\n`);
    await createPods(cluster, registry.host, pods, count);
    const alone = await answersAlone(registry.host, count);
    const args = ['report', '--kubeconfig', cluster.kubeconfig, '--to', 'arm64', '-o', 'json'];
    const { seconds, peakMiB, code, stderr } = await runToEnd([...args, '--registries.insecure', registry.host]);
    if (code !== 0) throw new Error(`report ended with ${code}: ${stderr.slice(0, 500)}`);
    const what = `report, ${pods} pods of ${count} images (${DELAY_MS} ms before each answer)`;
    return {
      rows: [
        row(`${what}: time`, `${seconds.toFixed(1)} s`, {
          bare: `${alone.toFixed(1)} s`,
          ratio: (seconds / alone).toFixed(2),
        }),
        row(`${what}: most memory`, `${peakMiB.toFixed(0)} MiB`, judge(peakMiB, { atMost: GOAL_MIB }, ' MiB')),
      ],
      figures: { pods, images: count, seconds, alone, peakMiB },
    };
  } finally {
    await registry.stop();
    await cluster.stop();
  }
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
