import { setTimeout as delay } from 'node:timers/promises';
import { Agent } from 'undici';
import { expectSuccess } from '../../cluster/client.ts';
import type { Cluster } from '../../cluster/cluster.ts';
import { type Measured, openWatch } from '../load.ts';

/** The namespace that load.ts prepares and empties. */
const PODS = '/api/v1/namespaces/bench/pods';
const WRITERS = 16;
const DEADLINE_MS = 120_000;

/** Gated pods. `perSecond` undefined: as fast as the API server accepts them. */
export type Gated = {
  readonly count: number;
  readonly images: readonly string[];
  readonly prefix: string;
  readonly gate: string;
  readonly perSecond?: number;
};

/**
 * Creates gated pods, and waits until each is seen without its gate and with an affinity for architectures: a program may also
 * release a pod whose images it could not look up. load.ts waits for a toleration of archaware, which other programs don't add.
 * Throws after two minutes.
 */
export async function createAndRelease(cluster: Cluster, gated: Gated): Promise<Measured> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false }, bodyTimeout: 0 });
  const released = new Map<string, number>();
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  try {
    const watch = await openWatch(cluster, dispatcher, deadline);
    const started = performance.now();
    const [created] = await Promise.all([create(cluster, gated, started), noteReleases(watch, gated, released)]);
    const delays = [...created].map(([name, at]) => Math.max(0, (released.get(name) ?? Number.NaN) - at));
    return { totalMs: Math.max(...released.values()) - started, delays };
  } catch (error) {
    if (!deadline.aborted) throw error;
    throw new Error(`only ${released.size} of ${gated.count} pods were released`, { cause: error });
  } finally {
    await dispatcher.destroy();
  }
}

/** Returns when each pod was created. */
async function create(cluster: Cluster, { count, images, prefix, gate, perSecond }: Gated, started: number) {
  const created = new Map<string, number>();
  let next = 0;
  const work = async () => {
    for (let index = next++; index < count; index = next++) {
      if (perSecond !== undefined) await delay(started + (index * 1000) / perSecond - performance.now());
      const name = `${prefix}-${index}`;
      const containers = [{ name: 'main', image: images[index % images.length], imagePullPolicy: 'IfNotPresent' }];
      const spec = { schedulerName: 'nobody', schedulingGates: [{ name: gate }], containers };
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
      expectSuccess(name, await cluster.request('POST', PODS, pod));
      created.set(name, performance.now());
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, work));
  return created;
}

/** Writes down when each of the pods is first seen released; ends when all were. */
async function noteReleases(
  watch: AsyncIterable<readonly string[]>,
  { prefix, count }: Gated,
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
