import { LRUCache } from 'lru-cache';
import { ImageError } from './errors.ts';

/**
 * Leaves hosts alone that do not answer: after {@link FAILURES} failures in a row of the connection, the deadline or the
 * server (5xx), nobody asks for a while but one at a time, to see whether it is back. Each host has its own.
 */
export type Circuits = {
  /** The last failure, where the host is not to be asked now; its `retryAfterMs` says when. */
  open(host: string): ImageError | undefined;
  /** The same just before the host is asked. Undefined: ask now, and say what came of it with {@link Circuits.settled}. */
  refusal(host: string): ImageError | undefined;
  /** An answer, whatever it says, closes the circuit. An error that says nothing of the host counts for nothing. */
  settled(host: string, error: ImageError | undefined): void;
  /** Whether it answered when it was last asked. */
  isHealthy(host: string): boolean;
};

export type CircuitOptions = {
  readonly now: () => number;
  /** From 0 to 1, 1 excluded. */
  readonly random: () => number;
};

const FAILURES = 5;
/** Milliseconds; doubles with each failure beyond. */
const FIRST = 2000;
const LONGEST = 30_000;
/** Hosts are named by whoever writes a pod. */
const MAX_HOSTS = 10_000;

type State = {
  readonly failures: number;
  readonly openUntil: number;
  readonly last?: ImageError;
};

const CLOSED: State = { failures: 0, openUntil: 0 };

export function createCircuits({ now, random }: CircuitOptions): Circuits {
  const states = new LRUCache<string, State>({ max: MAX_HOSTS });
  return {
    open,
    refusal(host) {
      const refused = open(host);
      const state = states.get(host);
      if (refused !== undefined || state === undefined || state.failures < FAILURES) return refused;
      // The first to come now tries; the others wait for what comes of it.
      states.set(host, { ...state, openUntil: now() + delay(state.failures) });
      return undefined;
    },
    settled(host, error) {
      if (error === undefined || !['unavailable', 'timeout', 'forbidden-address'].includes(error.code)) {
        states.set(host, CLOSED);
        return;
      }
      if (error.code === 'forbidden-address') return;
      const failures = (states.get(host)?.failures ?? 0) + 1;
      states.set(host, { failures, openUntil: now() + delay(failures), last: error });
    },
    isHealthy: (host) => states.get(host)?.failures === 0,
  };

  function open(host: string): ImageError | undefined {
    const state = states.get(host);
    if (state?.last === undefined || state.failures < FAILURES) return undefined;
    const remaining = state.openUntil - now();
    return remaining > 0 ? unasked(state.last, remaining) : undefined;
  }

  function delay(failures: number): number {
    if (failures < FAILURES) return 0;
    return Math.min(FIRST * 2 ** Math.min(failures - FAILURES, 20), LONGEST) * (0.8 + 0.4 * random());
  }
}

function unasked(last: ImageError, retryAfterMs: number): ImageError {
  return new ImageError(last.message, {
    code: last.code,
    temporary: true,
    retryAfterMs,
    ...(last.endpoint === undefined ? {} : { endpoint: last.endpoint }),
  });
}
