import { once } from 'node:events';
import type { Server } from 'node:net';

/**
 * Makes a server listen on `host:port` or `:port` (all addresses); gives the port, which is chosen for port 0. Throws where
 * it cannot, as on a port that is taken.
 */
export async function listen(server: Server, address: string): Promise<number> {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  const port = Number(address.slice(colon + 1));
  if (host === '') server.listen(port);
  else server.listen(port, host);
  // `once` rejects on `error`: a port that is taken.
  await once(server, 'listening');
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : 0;
}
