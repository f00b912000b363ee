import type { Agent } from 'undici';

/**
 * Knows which connections existed before a request. If the server has just closed such a connection, that says nothing
 * about the server.
 */
export function createKeptConnections() {
  // A counter of events, not a time. Each client of undici is one connection at a time.
  let moment = 0;
  const opened = new WeakMap<object, number>();
  const ended = new WeakMap<object, number>();
  return {
    /** Records the connections of a pool. */
    watch(pool: Agent): void {
      pool.on('connect', (_origin, targets) => {
        const client = targets.at(-1);
        moment += 1;
        if (client !== undefined) opened.set(client, moment);
      });
      // undici passes the error of a connection also to the request that was on it.
      pool.on('disconnect', (_origin, targets, error) => {
        const client = targets.at(-1);
        const since = client === undefined ? undefined : opened.get(client);
        if (since !== undefined) ended.set(error, since);
      });
    },
    /** Call right before a request is sent. */
    begin() {
      moment += 1;
      const start = moment;
      return {
        /** Whether the request failed with this error because a connection ended that existed before the request. */
        wasKept: (error: unknown): boolean => {
          const since = typeof error === 'object' && error !== null ? ended.get(error) : undefined;
          return since !== undefined && since < start;
        },
      };
    },
  };
}
