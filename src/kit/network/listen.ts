import { once } from 'node:events';
import type { Server } from 'node:net';

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
