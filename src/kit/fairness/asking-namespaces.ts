import { onAbort } from '../abort.ts';

/** The namespaces for which one piece of work is done. More may join while it runs. */
export type Askers = {
  /** Adds a namespace if it is not there yet. */
  join(namespace: string): void;
  /** Calls the listener at once for each namespace, and later for each that joins. The returned function ends that. */
  each(listener: (namespace: string) => void): () => void;
  /** The current namespaces. */
  names(): readonly string[];
};

/** Creates the set with its first namespaces. */
export function createAskers(...first: readonly string[]): Askers {
  const namespaces = new Set(first);
  const listeners = new Set<(namespace: string) => void>();
  return {
    join(namespace) {
      if (namespaces.has(namespace)) return;
      namespaces.add(namespace);
      for (const listener of [...listeners]) listener(namespace);
    },
    each(listener) {
      listeners.add(listener);
      for (const namespace of [...namespaces]) listener(namespace);
      return () => listeners.delete(listener);
    },
    names: () => [...namespaces],
  };
}

/**
 * Waits in a line for each of the namespaces until the first of them has its turn, and then leaves the other lines.
 *
 * @param enter joins the line of a namespace; returns a function that leaves it, which may be called after the turn too
 * @throws the signal's reason if it ends the wait
 */
export function waitForTurn<T>(
  askers: Pick<Askers, 'each'>,
  signal: AbortSignal,
  enter: (namespace: string, start: (turn: T | PromiseLike<T>) => void) => () => void,
): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const leaves: (() => void)[] = [];
    let isOver = false;
    const end = (): void => {
      isOver = true;
      for (const leave of leaves.splice(0)) leave();
    };
    const start = (turn: T | PromiseLike<T>): void => {
      end();
      resolve(turn);
    };
    const onEnd = (leave: () => void): void => void (isOver ? leave() : leaves.push(leave));
    onEnd(
      onAbort(signal, () => {
        end();
        reject(signal.reason);
      }),
    );
    onEnd(
      askers.each((namespace) => {
        if (!isOver) onEnd(enter(namespace, start));
      }),
    );
  });
}
