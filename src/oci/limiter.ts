export type LimiterOptions = {
  /** In flight for one host. */
  readonly perHost: number;
  /** In flight for one namespace, over all hosts. */
  readonly perNamespace: number;
  /** In flight in all. */
  readonly total: number;
  /** Of those, with hosts that are not known to answer: for one namespace, and in all. */
  readonly unproven: { readonly perNamespace: number; readonly total: number };
};

/** Who wants to ask whom. */
export type Claim = {
  readonly host: string;
  readonly namespace: string;
  /** Whether the host answered when it was last asked, as of now: hosts that hang must never hold all places. */
  readonly isProven: () => boolean;
};

/** Bounds what is in flight; who waits is served in order, past those whose own host or namespace is full. */
export type Limiter = {
  /**
   * Resolves with the function that gives the place back, to be called once.
   *
   * @throws the signal's reason when that ends the wait
   */
  acquire(claim: Claim, signal: AbortSignal): Promise<() => void>;
};

export function createLimiter(options: LimiterOptions): Limiter {
  type Waiter = { readonly claim: Claim; readonly start: () => void };
  const waiting = new Set<Waiter>();
  const hosts = new Map<string, number>();
  const namespaces = new Map<string, number>();
  const unprovenOf = new Map<string, number>();
  let running = 0;
  let unproven = 0;

  const add = (counts: Map<string, number>, key: string, by: 1 | -1): void => {
    const count = (counts.get(key) ?? 0) + by;
    if (count === 0) counts.delete(key);
    else counts.set(key, count);
  };
  const hasRoom = ({ host, namespace, isProven }: Claim): boolean =>
    running < options.total &&
    (hosts.get(host) ?? 0) < options.perHost &&
    (namespaces.get(namespace) ?? 0) < options.perNamespace &&
    (isProven() ||
      (unproven < options.unproven.total && (unprovenOf.get(namespace) ?? 0) < options.unproven.perNamespace));

  function count({ host, namespace }: Claim, wasProven: boolean, by: 1 | -1): void {
    running += by;
    add(hosts, host, by);
    add(namespaces, namespace, by);
    if (wasProven) return;
    unproven += by;
    add(unprovenOf, namespace, by);
  }

  function take(claim: Claim): () => void {
    const wasProven = claim.isProven();
    count(claim, wasProven, 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      count(claim, wasProven, -1);
      for (const waiter of waiting) {
        if (running >= options.total) break;
        if (hasRoom(waiter.claim)) waiter.start();
      }
    };
  }

  return {
    acquire(claim, signal) {
      if (signal.aborted) return Promise.reject(signal.reason);
      if (hasRoom(claim)) return Promise.resolve(take(claim));
      return new Promise((resolve, reject) => {
        const waiter: Waiter = {
          claim,
          start: () => {
            waiting.delete(waiter);
            signal.removeEventListener('abort', abandon);
            resolve(take(claim));
          },
        };
        const abandon = (): void => {
          waiting.delete(waiter);
          reject(signal.reason);
        };
        signal.addEventListener('abort', abandon, { once: true });
        waiting.add(waiter);
      });
    },
  };
}
