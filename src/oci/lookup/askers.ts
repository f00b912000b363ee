import { onAbort } from '../../kit/abort.ts';

/** The namespaces for which one lookup runs. More may join while it runs. */
export type Askers = {
  /** Adds a namespace if it is not there yet. */
  join(namespace: string): void;
  /** Calls the listener at once for each namespace, and later for each that joins. The returned function ends that. */
  each(listener: (namespace: string) => void): () => void;
  /** The current namespaces; never empty. */
  names(): readonly string[];
};

/** Creates the set with its first namespace. */
export function createAskers(first: string): Askers {
  const namespaces = new Set([first]);
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
  enter: (namespace: string, start: (turn: T) => void) => () => void,
): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const leaves: (() => void)[] = [];
    let isOver = false;
    const end = (): void => {
      isOver = true;
      for (const leave of leaves.splice(0)) leave();
    };
    const start = (turn: T): void => {
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

/** Work that runs once for all that ask for it under the same key. */
export type Joint<T> = {
  /** Adds a namespace to the work that runs under a key. Returns whether there is such work. */
  join(key: string, namespace: string): boolean;
  /**
   * Returns the result of the work under a key, for these namespaces too; starts the work if it does not run. A rejection of the
   * promise is never unhandled. `onEnd` is called when the work that this call started has ended and may be started again.
   */
  run(key: string, askers: Askers, work: () => Promise<T>, onEnd?: () => void): Promise<T>;
  /** The number of keys under which work runs. */
  readonly size: number;
};

/** Creates the merger of work; nothing runs yet. The work gets its turns as soon as one of its namespaces does. */
export function createJoint<T>(): Joint<T> {
  const running = new Map<string, { readonly found: Promise<T>; readonly askers: Askers }>();
  return {
    join(key, namespace) {
      const other = running.get(key);
      other?.askers.join(namespace);
      return other !== undefined;
    },
    run(key, askers, work, onEnd = () => {}) {
      const other = running.get(key);
      if (other !== undefined) {
        const forget = askers.each(other.askers.join);
        other.found.then(forget, forget);
        return other.found;
      }
      const found = work().finally(() => {
        running.delete(key);
        onEnd();
      });
      found.catch(() => undefined);
      running.set(key, { found, askers });
      return found;
    },
    get size() {
      return running.size;
    },
  };
}
