import { onAbort } from '../../kit/abort.ts';

/** A number of places for each name. Who finds none waits for its turn. */
export type Places = {
  /**
   * Works at a place under this name.
   *
   * @throws what the work throws, or the signal's reason if that aborts before there is a place
   */
  take<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
};

type Queue = { used: number; readonly waiting: Set<() => void> };

/** Creates `most` places for each name. */
export function createPlaces(most: number): Places {
  const queues = new Map<string, Queue>();
  return {
    async take(name, signal, work) {
      const queue = queues.get(name) ?? { used: 0, waiting: new Set() };
      queues.set(name, queue);
      if (queue.used >= most) await turn(queue, signal);
      else queue.used += 1;
      try {
        return await work();
      } finally {
        const [next] = queue.waiting;
        // The work that waits takes over this place, so the count stays.
        if (next === undefined) queue.used -= 1;
        else {
          queue.waiting.delete(next);
          next();
        }
      }
    },
  };
}

function turn({ waiting }: Queue, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const start = (): void => {
      forget();
      resolve();
    };
    waiting.add(start);
    const forget = onAbort(signal, () => {
      waiting.delete(start);
      reject(signal.reason);
    });
  });
}
