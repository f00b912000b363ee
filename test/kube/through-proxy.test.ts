import { createServer } from 'node:https';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { expect } from 'chai';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import { listen } from '../../src/kit/network/listen.ts';
import { startForwardProxy } from '../support/forward-proxy.ts';
import { clientAt } from './cluster.ts';

describe('an API client behind a proxy', () => {
  it('gives up a proxy that is silent', async () => {
    const sockets = new Set<Socket>();
    const silent = createTcpServer((socket) => sockets.add(socket.on('error', () => undefined)));
    const uri = `http://127.0.0.1:${await listen(silent, '127.0.0.1:0')}`;
    // More than a second: undici then counts it in turns of the event loop.
    const client = clientAt('https://api.example.com', { proxy: { uri } }, { silenceMs: 1_500 });
    try {
      const failed = await client.request('get', '/version').catch((error: unknown) => String(error));
      expect(failed).to.contain(`api.example.com through the proxy ${new URL(uri).host}: UND_ERR_HEADERS_TIMEOUT`);
    } finally {
      await client.close();
      for (const socket of sockets) socket.destroy();
      silent.close();
    }
  });

  it('sends requests and watches through it, and names it where it fails', async () => {
    const authority = createAuthority('cluster');
    const { certificate: cert, key } = authority.issue('kube-apiserver', ['api.example.com']);
    const server = createServer({ cert, key }, ({ url }, response) => response.end(JSON.stringify({ url })));
    const port = await listen(server, '127.0.0.1:0');
    const proxy = await startForwardProxy({ login: 'u:p', dial: () => `127.0.0.1:${port}` });
    const token = `Basic ${Buffer.from('u:p').toString('base64')}`;
    const tls = () => ({ ca: authority.certificate });
    const clients = [{ token }, {}].map((login) =>
      clientAt('https://api.example.com:6443/k', { tls, proxy: { uri: proxy.url, ...login } }),
    );
    const [client, stranger] = clients;
    const failure = (error: unknown) => String(error);
    try {
      expect(await client?.request('get', '/version')).to.deep.equal({ url: '/k/version' });
      let watched = '';
      const onPiece = (piece: Buffer) => {
        watched += piece;
      };
      await client?.watch('/watch', { signal: new AbortController().signal, onOpen() {}, onPiece });
      expect(JSON.parse(watched)).to.deep.equal({ url: '/k/watch' });
      expect(new Set(proxy.targets)).to.deep.equal(new Set(['CONNECT api.example.com:6443']));
      const unknown = await stranger?.request('get', '/version').catch(failure);
      const through = `the API server at api.example.com:6443 through the proxy ${proxy.host}: `;
      expect(unknown).to.contain(through).and.to.contain('407');
      await proxy.stop();
      client?.renew();
      expect(await client?.request('get', '/version').catch(failure)).to.contain(`${through}ECONNREFUSED`);
    } finally {
      await Promise.all(clients.map((each) => each.close()));
      await proxy.stop();
      server.close();
    }
  });
});
