import { createLru } from '../../kit/lru.ts';

/** From when on the answer of a program is no longer used, although it says so, because a registry refused it. */
export type Refusals = {
  /** The program was called for a registry. */
  called(registry: string): void;
  /** Returns the time as of `now` at which an answer for a registry ends that was refused. Call it once for an answer. */
  end(registry: string): number;
};

/** Milliseconds between the calls of a program for a registry that refuses its answers: it may be wrong for good. */
const PAUSE = 30_000;
const MAX_REGISTRIES = 10_000;

export function createRefusals(now: () => number): Refusals {
  /** When the program may be called next because of a refusal. */
  const next = createLru<number>(MAX_REGISTRIES);
  const after = (registry: string, time: number): number => Math.max(next.get(registry) ?? 0, time);
  return {
    called: (registry) => void next.set(registry, after(registry, now() + PAUSE)),
    end(registry) {
      const time = after(registry, now());
      next.set(registry, time + PAUSE);
      return time;
    },
  };
}
