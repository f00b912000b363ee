/** Pool names come from nodes. */
const MAX_POOLS = 100;

/** Returns the first pool names unchanged, and `other` for all later ones. */
export function createPoolLabels(): (name: string) => string {
  const known = new Set<string>();
  return (name) => {
    if (known.has(name)) return name;
    if (known.size >= MAX_POOLS) return 'other';
    known.add(name);
    return name;
  };
}

/**
 * Creates the labels of registries in metrics: authors of pods choose host names, so the number of labels is limited, and all other
 * hosts share one. A host that answers replaces a host that never did, so that invented names cannot displace a real registry.
 */
export function createRegistryLabels(options: {
  /** The most labels for registries that are not configured. */
  readonly most: number;
  /** A label that was unused for this long may be given to another host. Milliseconds. */
  readonly idleMs: number;
  /** Milliseconds on a clock that never goes back. */
  readonly now: () => number;
  /** Called when a host loses its label, so that its series can be removed. */
  readonly onForgotten: (host: string) => void;
}) {
  const { most, idleMs, now, onForgotten } = options;
  const configured = new Set<string>();
  /** The first one was unused for longest. */
  const others = new Map<string, { readonly usedAt: number; readonly hasAnswered: boolean }>();

  /** Returns the host that may lose its label to a new one. */
  function replaceable(hasAnswered: boolean): string | undefined {
    const oldest = now() - idleMs;
    for (const [host, other] of others) {
      if (other.usedAt <= oldest || (hasAnswered && !other.hasAnswered)) return host;
    }
    return undefined;
  }

  return {
    /** Gives these hosts a label of their own, always. */
    configure(hosts: readonly string[]): void {
      for (const host of hosts) {
        configured.add(host);
        // Configured hosts leave this list but keep their series.
        others.delete(host);
      }
    },
    /** Returns the label of a host. `hasAnswered`: whether the host has just answered a request. */
    labelOf(host: string, hasAnswered: boolean): string {
      if (configured.has(host)) return host;
      const known = others.get(host);
      if (known === undefined && others.size >= most) {
        const replaced = replaceable(hasAnswered);
        if (replaced === undefined) return 'other';
        others.delete(replaced);
        onForgotten(replaced);
      }
      others.delete(host);
      others.set(host, { usedAt: now(), hasAnswered: hasAnswered || known?.hasAnswered === true });
      return host;
    },
  };
}
