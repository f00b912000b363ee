/** Small things that several faults do. */
import type { Scene } from './harness.ts';

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
export const often = (times: number): string => (times === 1 ? 'once' : times === 2 ? 'twice' : `${times} times`);

/** How long a fault lasts and how many pods are created meanwhile, as the seed chooses it. */
export const amount = ({ dice }: Pick<Scene, 'dice'>, least = 2_000, most = 6_000) => ({
  ms: dice.whole(least, most),
  count: dice.whole(2, 6),
});
