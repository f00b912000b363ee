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
        moment += 1;
        for (const client of targets.slice(-1)) opened.set(client, moment);
      });
      // undici passes the error of a connection also to the request that was on it.
      pool.on('disconnect', (_origin, targets, error) => {
        const since = targets.slice(-1).flatMap((client) => opened.get(client) ?? []);
        for (const each of since) ended.set(error, each);
      });
    },
    /** Call right before a request is sent. */
    begin() {
      moment += 1;
      const start = moment;
      /** Returns whether the request failed with this error because a connection ended that existed before the request. */
      return (error: unknown): boolean => error instanceof Error && (ended.get(error) ?? start) < start;
    },
  };
}
