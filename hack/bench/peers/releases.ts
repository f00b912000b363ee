import { Agent } from 'undici';
import type { Cluster } from '../../cluster/cluster.ts';
import { createPods, type Measured, openWatch, type Pods } from '../load.ts';

const DEADLINE_MS = 120_000;

/**
 * Creates gated pods, and waits until each is seen without its gate and with an affinity for architectures: a program may also
 * release a pod whose images it could not look up. load.ts waits for a toleration of archaware, which other programs don't add.
 * Throws after two minutes.
 */
export async function createAndRelease(cluster: Cluster, gated: Pods): Promise<Measured> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false }, bodyTimeout: 0 });
  const released = new Map<string, number>();
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  try {
    const watch = await openWatch(cluster, dispatcher, deadline);
    const started = performance.now();
    const [created] = await Promise.all([createPods(cluster, gated, started), noteReleases(watch, gated, released)]);
    const delays = [...created].map(([name, at]) => Math.max(0, (released.get(name) ?? Number.NaN) - at));
    return { totalMs: Math.max(...released.values()) - started, delays };
  } catch (error) {
    if (!deadline.aborted) throw error;
    throw new Error(`only ${released.size} of ${gated.count} pods were released`, { cause: error });
  } finally {
    await dispatcher.destroy();
  }
}

/** Writes down when each of the pods is first seen released; ends when all were. */
async function noteReleases(
  watch: AsyncIterable<readonly string[]>,
  { prefix, count }: Pods,
  released: Map<string, number>,
) {
  for await (const lines of watch) {
    for (const line of lines) {
      // Cheaper than parsing: this process must not be the bottleneck. The managed fields say "f:schedulingGates".
      if (line.includes('"schedulingGates"') || !line.includes('"kubernetes.io/arch"')) continue;
      const name = /"metadata":\{"name":"([^"]+)"/.exec(line)?.[1];
      // Pods of an earlier run may still exist.
      if (name?.startsWith(`${prefix}-`) && !released.has(name)) released.set(name, performance.now());
    }
    if (released.size === count) return;
  }
}
