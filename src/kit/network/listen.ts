import { once } from 'node:events';
import type { Server } from 'node:net';
import { messageOf } from '../errors.ts';

/**
 * Makes a server listen on `host:port` or `:port` (all addresses) and returns the port; port 0 means any free port.
 * Throws if the server cannot listen, for example because the port is taken.
 */
export async function listen(server: Server, address: string): Promise<number> {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  const port = Number(address.slice(colon + 1));
  if (host === '') server.listen(port);
  else server.listen(port, host);
  // `once` rejects on `error`, for example if the port is taken.
  await once(server, 'listening');
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : 0;
}

/** Returns the error for a configuration key whose address could not be listened on. */
export function cannotListen(key: string, address: string, error: unknown): Error {
  return new Error(`${key}: cannot listen on "${address}" (${messageOf(error)}); choose another port`);
}
