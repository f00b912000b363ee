import { untilAborted } from './abort.ts';

/** Merges work that is asked for several times at once: who comes later waits for what the first one started. */
export type Flights<T> = {
  /**
   * The result of the work that runs under a key, started where none does. The work outlives a caller that goes away,
   * and ends when all have.
   *
   * @throws what the work throws, or the caller's signal's reason
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
        // Still there: it has not landed. Nobody may join what is about to end.
        if (flight.waiting === 0 && flights.get(key) === flight) {
          flights.delete(key);
          flight.controller.abort(signal.reason);
        }
      }
    },
  };
}
