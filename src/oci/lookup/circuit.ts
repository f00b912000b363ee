import { createLru } from '../../kit/lru.ts';
import { ImageError } from '../errors.ts';

/**
 * Spares hosts that do not answer: after {@link FAILURES} failures in a row of the connection, the deadline or the
 * server (5xx), a host gets no requests for a while, and then one at a time to see whether it is back. Each host has
 * its own circuit.
 *
 * Authors of pods choose paths as well, and a registry that passes requests on may fail for one path alone. So failures
 * that only one or two namespaces met block only those namespaces; failures that {@link WITNESSES} namespaces met count
 * for the host.
 */
export type Circuits = {
  /**
   * Returns the last failure if the host must not be asked now for these namespaces; its `retryAfterMs` says when. If
   * one of the namespaces may ask the host, the lookup may ask it for all of them.
   */
  open(host: string, namespaces: readonly string[]): ImageError | undefined;
  /**
   * The same, just before the host is asked. If it returns undefined, ask now and report the result with {@link
   * Circuits.record}.
   */
  refusal(host: string, namespaces: readonly string[]): ImageError | undefined;
  /**
   * Records a result. An answer, whatever it says, closes the circuit for everybody. An error that says nothing about
   * the host changes nothing.
   */
  record(host: string, namespaces: readonly string[], error: ImageError | undefined): void;
  /** Whether the host answered when it was last asked. */
  isHealthy(host: string): boolean;
};

export type CircuitOptions = {
  readonly now: () => number;
  /** From 0 to 1, excluding 1. */
  readonly random: () => number;
};

const FAILURES = 5;
/**
 * The number of namespaces that must meet failures of a host, in a row, before the failures count for all others too.
 */
const WITNESSES = 3;
/** Milliseconds; doubles with each further failure. */
const FIRST = 2000;
const LONGEST = 30_000;
/** The limit is needed because authors of pods choose the names of hosts. */
const MAX_HOSTS = 10_000;

type Circuit = { failures: number; openUntil: number; last?: ImageError };
/** The failures of a host in a row. `of`: the failures that each of the first {@link WITNESSES} namespaces met. */
type Outage = Circuit & { readonly of: Map<string, Circuit> };

const closed = (): Circuit => ({ failures: 0, openUntil: 0 });

export function createCircuits({ now, random }: CircuitOptions): Circuits {
  const outages = createLru<Outage>(MAX_HOSTS);

  /** Returns the circuits that must all be open to block the host. */
  function circuitsOf(host: string, namespaces: readonly string[]): readonly Circuit[] {
    const outage = outages.get(host);
    if (outage === undefined) return [];
    return outage.of.size >= WITNESSES ? [outage] : namespaces.map((name) => outage.of.get(name) ?? closed());
  }

  function open(host: string, namespaces: readonly string[]): ImageError | undefined {
    const circuits = circuitsOf(host, namespaces);
    const refusals = circuits.flatMap((circuit) => refusalOf(circuit) ?? []);
    if (refusals.length < circuits.length) return undefined;
    // The failure of the namespace whose pause ends first.
    return refusals.sort((one, other) => (one.retryAfterMs ?? 0) - (other.retryAfterMs ?? 0))[0];
  }

  return {
    open,
    refusal(host, namespaces) {
      const refused = open(host, namespaces);
      if (refused !== undefined) return refused;
      // The first caller after the pause tries; the others wait for its result.
      for (const circuit of circuitsOf(host, namespaces)) {
        if (circuit.failures >= FAILURES) circuit.openUntil = now() + delay(circuit.failures);
      }
      return undefined;
    },
    record(host, namespaces, error) {
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
