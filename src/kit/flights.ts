import { untilAborted } from './abort.ts';

/** Merges requests for the same work: a caller that asks while the work is running waits for its result. */
export type Flights<T> = {
  /**
   * Returns the result of the work under a key, and starts the work if it is not running. The work goes on when one
   * caller leaves, and is aborted when all callers have left.
   *
   * @throws what the work throws, or the reason of the caller's signal
   */
  join(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
};

export function createFlights<T>(): Flights<T> {
  type Flight = { readonly result: Promise<T>; readonly controller: AbortController; waiting: number };
  const flights = new Map<string, Flight>();

  function start(key: string, work: (signal: AbortSignal) => Promise<T>): Flight {
    const controller = new AbortController();
    const flight: Flight = { result: work(controller.signal), controller, waiting: 0 };
    flights.set(key, flight);
    const land = (): void => {
      if (flights.get(key) === flight) flights.delete(key);
    };
    flight.result.then(land, land);
    return flight;
  }

  return {
    async join(key, signal, work) {
      signal.throwIfAborted();
      const flight = flights.get(key) ?? start(key, work);
      flight.waiting += 1;
      try {
        return await untilAborted(flight.result, signal);
      } finally {
        flight.waiting -= 1;
        // The work is still running and no caller is left. Remove it first, so that nobody joins work that is about to
        // end.
        if (flight.waiting === 0 && flights.get(key) === flight) {
          flights.delete(key);
          flight.controller.abort(signal.reason);
        }
      }
    },
  };
}
