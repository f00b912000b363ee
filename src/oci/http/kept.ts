import type { Agent } from 'undici';

/** Knows which connections are older than a request: one that the server has just closed says nothing of the server. */
export type KeptConnections = {
  /** Notices the connections of a pool. */
  watch(pool: Agent): void;
  /** To be called right before a request is sent. */
  begin(): {
    /** Whether the request failed with this error because a connection ended that was there before it. */
    wasKept(error: unknown): boolean;
  };
};

export function createKeptConnections(): KeptConnections {
  // An order of events, not a time. undici's client is one connection at a time.
  let moment = 0;
  const opened = new WeakMap<object, number>();
  const ended = new WeakMap<object, number>();
  return {
    watch(pool) {
      pool.on('connect', (_origin, targets) => {
        const client = targets.at(-1);
        moment += 1;
        if (client !== undefined) opened.set(client, moment);
      });
      // undici hands the error of the connection to the request that was on it, too.
      pool.on('disconnect', (_origin, targets, error) => {
        const client = targets.at(-1);
        const since = client === undefined ? undefined : opened.get(client);
        if (since !== undefined) ended.set(error, since);
      });
    },
    begin() {
      moment += 1;
      const start = moment;
      return {
        wasKept: (error) => {
          const since = typeof error === 'object' && error !== null ? ended.get(error) : undefined;
          return since !== undefined && since < start;
        },
      };
    },
  };
}
