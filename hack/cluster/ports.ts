import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the ports that Linux gives to outgoing connections and to listeners that name none: on a busy machine one of those would
 * take a port between here and its use.
 */
const FIRST = 20_000;
const COUNT = 12_000;

/** Finds this many different free ports of the loopback address; all are held until all are known. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen()));
  return Promise.all(servers.map(release));
}

async function listen(triesLeft = 50): Promise<Server> {
  const server = createServer().listen(FIRST + Math.floor(Math.random() * COUNT), '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if (triesLeft === 0) throw error;
    return listen(triesLeft - 1);
  }
}

async function release(server: Server): Promise<number> {
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a listening socket has no port');
  return address.port;
}
