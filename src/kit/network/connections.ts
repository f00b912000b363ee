import type { Socket } from 'node:net';

/** The limits for the number of connections. */
export type ConnectionLimits = {
  readonly all: number;
  /** Connections that have not proved yet that they are from the client that the server is for. */
  readonly unproven: number;
};

/** The open connections of a server. */
export type Connections = {
  /** Adds a connection, and closes one if there are too many. */
  add(socket: Socket): void;
  /** Marks a connection as proven, for example by a request to a path that only one client knows. */
  prove(address: string, port: number): void;
};

type OpenConnection = {
  readonly socket: Socket;
  readonly key: string;
  readonly address: string;
  readonly since: number;
  isProven: boolean;
};

/** A client that has a question opens a connection, asks, and waits a few seconds for the answer. */
const ASKED_BY_MS = 3_000;

/**
 * Limits the number of connections. If there are too many, one that is not proven is closed: the oldest one that should have sent a request
 * by now, else the oldest one of the address with the most connections. So clients with a few idle connections each cannot push out one
 * that asks, and a client with many connections closes its own. A proven connection is never closed. `now`: monotonic, in milliseconds.
 */
export function createConnections({ all, unproven }: ConnectionLimits, now: () => number): Connections {
  /** All connections by address and port of the client, oldest first. */
  const open = new Map<string, OpenConnection>();
  /** The unproven connections by address, oldest first. */
  const waiting = new Map<string, Set<OpenConnection>>();
  /** The unproven connections of all addresses, oldest first. */
  const unasked = new Set<OpenConnection>();

  function unlist(connection: OpenConnection): void {
    const same = waiting.get(connection.address);
    if (!same?.delete(connection)) return;
    unasked.delete(connection);
    if (same.size === 0) waiting.delete(connection.address);
  }
  function close(connection: OpenConnection): void {
    if (open.get(connection.key) === connection) open.delete(connection.key);
    unlist(connection);
    connection.socket.destroy();
  }
  function closeOne(): void {
    const [first] = unasked;
    const isLate = first !== undefined && now() - first.since > ASKED_BY_MS;
    // If there is no other unproven connection, the new one is closed.
    const chosen = isLate ? first : oldestOfMost();
    if (chosen !== undefined) close(chosen);
  }
  function oldestOfMost(): OpenConnection | undefined {
    let most: Set<OpenConnection> | undefined;
    for (const same of waiting.values()) if (same.size > (most?.size ?? 0)) most = same;
    const [oldest] = most ?? [];
    return oldest;
  }
  return {
    add(socket) {
      const { remoteAddress: address = '', remotePort } = socket;
      const key = keyOf(address, remotePort);
      const connection: OpenConnection = { socket, key, address, since: now(), isProven: false };
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
      unlist(connection);
    },
  };
}

function keyOf(address: string, port: number | undefined): string {
  return `${address} ${port ?? ''}`;
}
