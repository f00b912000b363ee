/** What can go wrong between a registry and its client, on demand. */

export type Fault =
  /** Answered with this status and no content; `retryAfter` is the header as it is sent. */
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter?: string }
  /** Answered as usual, later. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Accepted and never answered. */
  | { readonly kind: 'hang' }
  /** The connection is cut without an answer. */
  | { readonly kind: 'reset' }
  /** The header names another digest than the content has. */
  | { readonly kind: 'wrong-digest' }
  /** The content is not what its digest says, though JSON is still the same JSON: only its hash shows it. */
  | { readonly kind: 'corrupt' }
  /** The header names this media type instead of the content's. */
  | { readonly kind: 'content-type'; readonly type: string }
  /** Half of the content, then the connection is cut. */
  | { readonly kind: 'truncate' }
  /** The content comes a byte at a time. */
  | { readonly kind: 'drip'; readonly ms: number };

/** Which requests meet a fault; absent fields match all. `path` is tested against the path without its query. */
export type FaultMatch = {
  readonly method?: string;
  readonly path?: RegExp;
  /** The fault goes away after so many requests. */
  readonly times?: number;
};

export type Faults = ReturnType<typeof createFaults>;

/** Faults of one registry, none at first. All that match apply; of two of one kind the older one does. */
export function createFaults() {
  const active = new Set<{ readonly fault: Fault; readonly match: FaultMatch; left: number }>();

  return {
    inject(fault: Fault, match: FaultMatch = {}): () => void {
      const entry = { fault, match, left: match.times ?? Number.POSITIVE_INFINITY };
      active.add(entry);
      return () => void active.delete(entry);
    },

    clear(): void {
      active.clear();
    },

    /** What this request meets. Asking counts as one of a fault's `times`. */
    meet(method: string, path: string): readonly Fault[] {
      const met: Fault[] = [];
      for (const entry of active) {
        const { fault, match } = entry;
        if (faultOf(met, fault.kind) || (match.method !== undefined && match.method !== method)) continue;
        if (match.path !== undefined && !match.path.test(path)) continue;
        met.push(fault);
        entry.left -= 1;
        if (entry.left <= 0) active.delete(entry);
      }
      return met;
    },
  };
}

/** The fault of one kind among those that a request met. */
export function faultOf<K extends Fault['kind']>(
  met: readonly Fault[],
  kind: K,
): Extract<Fault, { kind: K }> | undefined {
  return met.find((fault): fault is Extract<Fault, { kind: K }> => fault.kind === kind);
}
