import { LRUCache } from 'lru-cache';
import { ImageError } from '../errors.ts';

/**
 * Leaves hosts alone that do not answer: after {@link FAILURES} failures in a row of the connection, the deadline or the
 * server (5xx), nobody asks for a while but one at a time, to see whether it is back. Each host has its own.
 *
 * Authors of pods choose paths as well, and a registry that passes requests on may fail for one path alone. So failures that one
 * or two namespaces met keep these alone from asking; from {@link WITNESSES} namespaces on they are the host's.
 */
export type Circuits = {
  /**
   * The last failure, where the host is not to be asked now on behalf of these namespaces; its `retryAfterMs` says when. A host
   * that one of them may ask may be asked for all.
   */
  open(host: string, namespaces: readonly string[]): ImageError | undefined;
  /** The same just before the host is asked. Undefined: ask now, and say what came of it with {@link Circuits.settled}. */
  refusal(host: string, namespaces: readonly string[]): ImageError | undefined;
  /** An answer, whatever it says, closes the circuit for everybody. An error that says nothing of the host counts for nothing. */
  settled(host: string, namespaces: readonly string[], error: ImageError | undefined): void;
  /** Whether it answered when it was last asked. */
  isHealthy(host: string): boolean;
};

export type CircuitOptions = {
  readonly now: () => number;
  /** From 0 to 1, 1 excluded. */
  readonly random: () => number;
};

const FAILURES = 5;
/** So many namespaces have to meet failures of a host, in a row, before they count for all the others too. */
const WITNESSES = 3;
/** Milliseconds; doubles with each failure beyond. */
const FIRST = 2000;
const LONGEST = 30_000;
/** Authors of pods choose the names of hosts. */
const MAX_HOSTS = 10_000;

type Circuit = { failures: number; openUntil: number; last?: ImageError };
/** The failures of a host in a row. `of`: those that each namespace met, for the first {@link WITNESSES} of them. */
type Outage = Circuit & { readonly of: Map<string, Circuit> };

const closed = (): Circuit => ({ failures: 0, openUntil: 0 });

export function createCircuits({ now, random }: CircuitOptions): Circuits {
  const outages = new LRUCache<string, Outage>({ max: MAX_HOSTS });

  /** The circuits that have to be open, all of them, so that the host is not asked. */
  function circuitsOf(host: string, namespaces: readonly string[]): readonly Circuit[] {
    const outage = outages.get(host);
    if (outage === undefined) return [];
    return outage.of.size >= WITNESSES ? [outage] : namespaces.map((name) => outage.of.get(name) ?? closed());
  }

  function open(host: string, namespaces: readonly string[]): ImageError | undefined {
    const circuits = circuitsOf(host, namespaces);
    const refusals = circuits.flatMap((circuit) => refusalOf(circuit) ?? []);
    if (refusals.length < circuits.length) return undefined;
    // That of the namespace whose pause is over first.
    return refusals.sort((one, other) => (one.retryAfterMs ?? 0) - (other.retryAfterMs ?? 0))[0];
  }

  return {
    open,
    refusal(host, namespaces) {
      const refused = open(host, namespaces);
      if (refused !== undefined) return refused;
      // The first to come now tries; the others wait for what comes of it.
      for (const circuit of circuitsOf(host, namespaces)) {
        if (circuit.failures >= FAILURES) circuit.openUntil = now() + delay(circuit.failures);
      }
      return undefined;
    },
    settled(host, namespaces, error) {
      if (error === undefined || !['unavailable', 'timeout', 'forbidden-address'].includes(error.code)) {
        outages.set(host, { ...closed(), of: new Map() });
        return;
      }
      if (error.code === 'forbidden-address') return;
      const outage: Outage = outages.get(host) ?? { ...closed(), of: new Map() };
      outages.set(host, outage);
      for (const name of namespaces) {
        const circuit = outage.of.get(name) ?? closed();
        if (outage.of.has(name) || outage.of.size < WITNESSES) outage.of.set(name, circuit);
        fail(circuit, error);
      }
      fail(outage, error);
    },
    isHealthy: (host) => outages.get(host)?.failures === 0,
  };

  function fail(circuit: Circuit, error: ImageError): void {
    circuit.failures += 1;
    circuit.openUntil = now() + delay(circuit.failures);
    circuit.last = error;
  }

  function refusalOf({ failures, openUntil, last }: Circuit): ImageError | undefined {
    const remaining = openUntil - now();
    return last === undefined || failures < FAILURES || remaining <= 0 ? undefined : unasked(last, remaining);
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
