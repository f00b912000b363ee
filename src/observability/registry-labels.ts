export type RegistryLabelsOptions = {
  /** Registries that are not configured have so many labels at most. */
  readonly most: number;
  /** A label that was not used for so long may go to another host. Milliseconds. */
  readonly idleMs: number;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  /** A label is given up: its series must go. */
  readonly onForgotten: (host: string) => void;
};

/** Which registries have a label of their own in metrics. Hosts are named by authors of pods: the others share one. */
export type RegistryLabels = {
  /** These hosts always have their own. */
  configure(hosts: readonly string[]): void;
  /** The label of a host; `hasAnswered`: it just answered what it was asked. */
  labelOf(host: string, hasAnswered: boolean): string;
};

/** Creates it. A host that answers takes the place of one that never did, so that invented names crowd out no registry. */
export function createRegistryLabels({ most, idleMs, now, onForgotten }: RegistryLabelsOptions): RegistryLabels {
  const configured = new Set<string>();
  /** The one that was not used for longest is the first. */
  const others = new Map<string, { readonly usedAt: number; readonly hasAnswered: boolean }>();

  /** Whose label a host without one may have. */
  function replaceable(hasAnswered: boolean): string | undefined {
    const oldest = now() - idleMs;
    for (const [host, other] of others) {
      if (other.usedAt <= oldest || (hasAnswered && !other.hasAnswered)) return host;
    }
    return undefined;
  }

  return {
    configure(hosts) {
      for (const host of hosts) {
        configured.add(host);
        // Its series stay.
        others.delete(host);
      }
    },
    labelOf(host, hasAnswered) {
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
