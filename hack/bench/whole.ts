// Measures every goal that a real control plane can show, in one run: the controller and the bare programs alternate, and the
// ratios are of the same round. Usage: npm run bench [-- --pods N --rounds N --seconds N --idle-seconds N --json FILE]
import { parseArgs } from 'node:util';
import { startCluster } from '../cluster/cluster.ts';
import { startRegistry } from '../cluster/registry.ts';
import { measureBursts } from './burst.ts';
import { measureDelays, measureStart } from './delays.ts';
import { measureIdle, NAMESPACE } from './idle.ts';
import { pushImages } from './images.ts';
import { prepareNamespace } from './load.ts';
import { describeMachine, type Measured, publish } from './result.ts';
import { measureWebhook } from './webhook.ts';

/** Runs the benchmark and prints its table. */
export async function benchWhole(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      pods: { type: 'string', default: '2000' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '15' },
      'idle-seconds': { type: 'string', default: '60' },
      json: { type: 'string' },
    },
  });
  const [pods, rounds, seconds] = [Number(values.pods), Number(values.rounds), Number(values.seconds)];
  const machine = await describeMachine();
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
    parts.idle = await measureIdle(world, Number(values['idle-seconds']));
    const figures = Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part.figures]));
    const rows = Object.values(parts).flatMap((part) => part.rows);
    await publish({ name: 'bench', at: new Date().toISOString(), machine, rows, figures }, values.json);
  } finally {
    await cluster.stop();
    await registry.stop();
    await registry.remove();
  }
}
