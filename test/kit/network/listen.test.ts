import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { listen } from '../../../src/kit/network/listen.ts';

describe('listening', () => {
  const servers: Server[] = [];
  const newServer = () => {
    const server = createServer();
    servers.push(server);
    return server;
  };
  afterEach(async () => {
    for (const server of servers.splice(0)) if (server.listening) await once(server.close(), 'close');
  });

  const rows: [address: string, bound: RegExp][] = [
    [':0', /^(?:::|0\.0\.0\.0)$/],
    ['127.0.0.1:0', /^127\.0\.0\.1$/],
    ['localhost:0', /^(?:127\.0\.0\.1|::1)$/],
    ['[::1]:0', /^::1$/],
  ];
  for (const [address, bound] of rows) {
    it(`on ${address} returns the chosen port`, async () => {
      const server = newServer();
      const port = await listen(server, address);
      expect(server.address()).to.include({ port }).and.property('address').match(bound);
    });
  }

  it('fails on a port that is taken', async () => {
    const address = `127.0.0.1:${await listen(newServer(), '127.0.0.1:0')}`;
    const failure = await listen(newServer(), address).catch((error: unknown) => error);
    expect(failure).to.have.property('code', 'EADDRINUSE');
  });
});
