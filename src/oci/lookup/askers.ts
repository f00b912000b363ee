/** The namespaces on whose behalf one lookup runs. More may join for as long as it runs. */
export type Askers = {
  /** Adds a namespace, where it is not there yet. */
  join(namespace: string): void;
  /** Calls back for each namespace that is there, at once, and for each that joins. The returned function ends that. */
  each(listener: (namespace: string) => void): () => void;
  /** Those that are there now; never empty. */
  names(): readonly string[];
};

/** Creates it with the first one. */
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
