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
