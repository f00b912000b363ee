/** Small things that several faults do. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Choose } from '../../e2e/support/proxy-alterations.ts';
import type { Scene } from './harness.ts';
import type { Lab } from './lab.ts';

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
export const often = (times: number): string => (times === 1 ? 'once' : times === 2 ? 'twice' : `${times} times`);
export const isLease = (path: string): boolean => path.includes('/leases');
export const isWatch = (path: string): boolean => path.includes('watch=true');

/** How long a fault lasts and how many pods are created meanwhile, as the seed chooses it. */
export const amount = ({ dice }: Pick<Scene, 'dice'>, least = 2_000, most = 6_000) => ({
  ms: dice.whole(least, most),
  count: dice.whole(2, 6),
});

/** Lets every replica's requests go wrong for so long, and creates pods meanwhile. */
export async function whileAltered({ lab, load }: Scene, ms: number, count: number, choose: Choose): Promise<void> {
  const end = alterAll(lab, choose);
  try {
    await Promise.all([delay(ms), load.add(count)]);
  } finally {
    end();
  }
}

/** Lets the requests of every replica that runs go wrong; returns what ends that. */
export function alterAll(lab: Lab, choose: Choose): () => void {
  const ends = lab.replicas.all().map(({ proxy }) => proxy.alter(choose));
  return () => {
    for (const end of ends) end();
  };
}
