import type { Socket } from 'node:net';

/** How many connections there may be. */
export type ConnectionLimits = {
  readonly all: number;
  /** How many of them on which no request has come to the right path yet. */
  readonly unproven: number;
};

/** The connections of a server, from their first byte on. */
export type Connections = {
  /** Takes a connection in, and closes others where there are too many. */
  add(socket: Socket): void;
  /** A request on it came to the right path, which nobody but the API server knows. */
  prove(address: string, port: number): void;
};

type Connection = {
  readonly socket: Socket;
  readonly key: string;
  readonly address: string;
  readonly since: number;
  isProven: boolean;
};

/** The API server opens a connection when it has something to ask, and waits two seconds for the answer. */
const ASKED_BY_MS = 3_000;

/**
 * Bounds the connections. Where there are too many, one of a client that has not proven to know the path is closed: one that should
 * have asked by now, the oldest first, else the oldest of the address that has the most of them. So many addresses with a few idle
 * ones do not close those of the API server, and a client that opens many closes its own. One that is proven is never closed.
 * `now`: monotonic, in milliseconds.
 */
export function createConnections({ all, unproven }: ConnectionLimits, now: () => number): Connections {
  /** The oldest first, by the address and port of the client. */
  const open = new Map<string, Connection>();
  /** The unproven ones by address, the oldest first. */
  const waiting = new Map<string, Set<Connection>>();
  /** All of them, the oldest first. */
  const unasked = new Set<Connection>();

  function settle(connection: Connection): void {
    const same = waiting.get(connection.address);
    if (!same?.delete(connection)) return;
    unasked.delete(connection);
    if (same.size === 0) waiting.delete(connection.address);
  }
  function close(connection: Connection): void {
    if (open.get(connection.key) === connection) open.delete(connection.key);
    settle(connection);
    connection.socket.destroy();
  }
  function closeOne(): void {
    const [first] = unasked;
    const isLate = first !== undefined && now() - first.since > ASKED_BY_MS;
    // The new one itself where there is no other.
    const chosen = isLate ? first : oldestOfMost();
    if (chosen !== undefined) close(chosen);
  }
  function oldestOfMost(): Connection | undefined {
    let most: Set<Connection> | undefined;
    for (const same of waiting.values()) if (same.size > (most?.size ?? 0)) most = same;
    const [oldest] = most ?? [];
    return oldest;
  }
  return {
    add(socket) {
      const { remoteAddress: address = '', remotePort } = socket;
      const key = keyOf(address, remotePort);
      const connection: Connection = { socket, key, address, since: now(), isProven: false };
      open.set(connection.key, connection);
      waiting.set(address, (waiting.get(address) ?? new Set()).add(connection));
      unasked.add(connection);
      socket.once('close', () => close(connection));
      if (unasked.size > unproven || open.size > all) closeOne();
    },
    prove(address, port) {
      const connection = open.get(keyOf(address, port));
      if (connection === undefined || connection.isProven) return;
      connection.isProven = true;
      settle(connection);
    },
  };
}

function keyOf(address: string, port: number | undefined): string {
  return `${address} ${port ?? ''}`;
}
