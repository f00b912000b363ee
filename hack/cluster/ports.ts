import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the ports that Linux gives to outgoing connections and to listeners that name none: on a busy machine one of those would
 * take a port between here and its use.
 */
const FIRST = 20_000;
/**
 * Each process takes ports from a range of its own, one after the other: between here and its use a port is free, and two processes
 * that choose at random sometimes choose the same one.
 */
const RANGES = 16;
const PORTS = 750;
const range = Number(process.env.MOCHA_WORKER_ID ?? process.pid) % RANGES;
let last = Math.floor(Math.random() * PORTS);

function nextPort(): number {
  last = (last + 1) % PORTS;
  return FIRST + range * PORTS + last;
}

/** Finds this many different free ports of the loopback address; all are held until all are known. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen()));
  return Promise.all(servers.map(release));
}

async function listen(triesLeft = 50): Promise<Server> {
  const server = createServer().listen(nextPort(), '127.0.0.1');
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
