import { createFairQueue } from '../../kit/fairness/fair-queue.ts';
import { createFlights } from '../../kit/flights.ts';
import { type Askers, createAskers, waitForTurn } from '../lookup/askers.ts';

/** Lets a few pieces of work run at a time. Namespaces take turns, each first come, first served. */
export type NamespaceTurns = {
  /**
   * Waits for a turn of one of the namespaces, then does the work.
   *
   * @throws what the work throws, or the signal's reason
   */
  take<T>(askers: Pick<Askers, 'each'>, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** The number of those that wait in the line of a namespace. */
  waitingIn(namespace: string): number;
};

/** The helper of a cloud takes 40 MB, and authors of pods choose how many images there are to ask about. */
const MOST_PROGRAMS = 2;

/** Creates the turns; default: those of helper programs, over all helpers and plug-ins. */
export function createNamespaceTurns(most = MOST_PROGRAMS): NamespaceTurns {
  const waiting = createFairQueue<() => void>();
  let running = 0;

  function startNext(): void {
    while (running < most) {
      const start = waiting.take();
      if (start === undefined) return;
      running += 1;
      start();
    }
  }

  return {
    waitingIn: waiting.sizeOf,
    async take(askers, signal, work) {
      const turn = waitForTurn<void>(askers, signal, (namespace, start) => waiting.add(namespace, start));
      startNext();
      await turn;
      try {
        return await work();
      } finally {
        running -= 1;
        startNext();
      }
    },
  };
}

/** Runs a program once for all that ask the same at the same time. It gets its turn as soon as one of their namespaces does. */
type SharedRuns<T> = (
  key: string,
  askers: Askers,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

/** Creates the runs of one helper or plug-in. The work goes on when one caller leaves, and ends when all have left. */
export function createSharedRuns<T>(turns: NamespaceTurns): SharedRuns<T> {
  const flights = createFlights<T>();
  /** For whom each run is, while there are callers. */
  const runs = new Map<string, { readonly all: Askers; callers: number }>();

  return async (key, askers, signal, run) => {
    const running = runs.get(key) ?? { all: createAskers(askers.names()[0] ?? ''), callers: 0 };
    const { all } = running;
    runs.set(key, running);
    running.callers += 1;
    const forgetJoin = askers.each(all.join);
    try {
      return await flights.join(key, signal, (shared) => turns.take(all, shared, () => run(shared)));
    } finally {
      forgetJoin();
      running.callers -= 1;
      if (running.callers === 0) runs.delete(key);
    }
  };
}
