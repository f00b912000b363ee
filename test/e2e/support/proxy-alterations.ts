/** What can go wrong between a client and the API server on the way back: `ApiProxy.alter` applies it. */

/** What becomes of the matching requests. The first field that applies ends the request. */
export type Alteration = {
  /** Waits so long before anything else. Milliseconds. */
  readonly delayMs?: number;
  /** Answers with this status instead of asking the server. */
  readonly status?: number;
  /** The header `Retry-After` of such an answer. Seconds. */
  readonly retryAfter?: number;
  /** The server does the work, and the connection is cut before its answer. */
  readonly loseAnswer?: boolean;
  /** The connection is cut in the middle of the next piece of the body; for a watch, in the middle of an event. */
  readonly cut?: boolean;
};

/** The alteration of a request, or undefined where it passes as it is. */
export type Choose = (method: string, path: string) => Alteration | undefined;

/** The alterations of one proxy; the oldest that chooses something counts. */
export function createAlterations() {
  const active = new Set<Choose>();
  return {
    /** Adds one; returns what takes it away. */
    add(choose: Choose): () => void {
      active.add(choose);
      return () => void active.delete(choose);
    },
    of(method: string, path: string): Alteration {
      for (const choose of active) {
        const chosen = choose(method, path);
        if (chosen !== undefined) return chosen;
      }
      return {};
    },
  };
}
