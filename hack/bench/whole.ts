// Measures every goal that a real control plane can show, in one run: the controller and the bare programs alternate, and the
// ratios are of the same round. Usage: npm run bench [-- --pods N --rounds N --seconds N --idle-seconds N --json FILE]
import { startCluster } from '../cluster/cluster.ts';
import { startRegistry } from '../cluster/registry.ts';
import { measureBursts } from './burst.ts';
import { measureDelays, measureStart } from './delays.ts';
import { measureIdle, NAMESPACE } from './idle.ts';
import { pushImages } from './images.ts';
import { prepareNamespace } from './load.ts';
import { type Measured, runBenchmark, together } from './result.ts';
import { measureWebhook } from './webhook.ts';

const DEFAULTS = { pods: 2_000, rounds: 3, seconds: 15, 'idle-seconds': 60 };

/** Runs the benchmark and prints its table. */
export async function benchWhole(args: string[]): Promise<void> {
  await runBenchmark('bench', args, DEFAULTS, measureWhole);
}

async function measureWhole({
  pods,
  rounds,
  seconds,
  'idle-seconds': idleSeconds,
}: typeof DEFAULTS): Promise<Measured> {
  const cluster = await startCluster({ auditNamespaces: [NAMESPACE] });
  const registry = await startRegistry();
  try {
    await prepareNamespace(cluster);
    const world = { cluster, registry, images: await pushImages(registry) };
    const parts: Record<string, Measured> = {
      start: await measureStart(world),
      burst: await measureBursts(world, pods, rounds),
      delays: await measureDelays(world, seconds, rounds),
      webhook: await measureWebhook(cluster, { seconds, rounds }),
    };
    // The last one: it applies the manifest, whose policies look at every write.
    parts.idle = await measureIdle(world, idleSeconds);
    return together(parts);
  } finally {
    await cluster.stop();
    await registry.stop();
    await registry.remove();
  }
}
