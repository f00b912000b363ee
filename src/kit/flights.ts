import { untilAborted } from './abort.ts';
import { type Askers, createAskers } from './fairness/asking-namespaces.ts';

/** Merges requests for the same work: a caller that asks while the work is running waits for its result. */
export type Flights<T> = {
  /**
   * Returns the result of the work under a key, and starts the work if it is not running. The work goes on when one
   * caller leaves, and is aborted when all callers have left.
   *
   * @param work gets the namespaces of all callers, too
   * @param askers the namespaces of this caller, which may become more
   * @throws what the work throws, or the reason of the caller's signal
   */
  join(
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal, askers: Askers) => Promise<T>,
    askers?: Pick<Askers, 'each'>,
  ): Promise<T>;
  /** Adds a namespace to the work that is running under a key. False if there is none. */
  add(key: string, namespace: string): boolean;
  /** The number of keys under which work is running. */
  readonly size: number;
};

export function createFlights<T>(): Flights<T> {
  type Flight = {
    readonly result: Promise<T>;
    readonly controller: AbortController;
    readonly askers: Askers;
    waiting: number;
  };
  const flights = new Map<string, Flight>();

  function start(key: string, work: Parameters<Flights<T>['join']>[2], first: Pick<Askers, 'each'>): Flight {
    const controller = new AbortController();
    const askers = createAskers();
    first.each(askers.join)();
    const flight: Flight = { result: work(controller.signal, askers), controller, askers, waiting: 0 };
    flights.set(key, flight);
    const land = (): void => {
      if (flights.get(key) === flight) flights.delete(key);
    };
    flight.result.then(land, land);
    return flight;
  }

  return {
    async join(key, signal, work, askers = NOBODY) {
      signal.throwIfAborted();
      const flight = flights.get(key) ?? start(key, work, askers);
      const forget = askers.each(flight.askers.join);
      flight.waiting += 1;
      try {
        return await untilAborted(flight.result, signal);
      } finally {
        forget();
        flight.waiting -= 1;
        // The work is still running and no caller is left. Remove it first, so that nobody joins work that is about to end.
        if (flight.waiting === 0 && flights.get(key) === flight) {
          flights.delete(key);
          flight.controller.abort(signal.reason);
        }
      }
    },
    add(key, namespace) {
      const flight = flights.get(key);
      flight?.askers.join(namespace);
      return flight !== undefined;
    },
    get size() {
      return flights.size;
    },
  };
}

const NOBODY: Pick<Askers, 'each'> = createAskers();
