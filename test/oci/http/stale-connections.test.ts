import { createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { createGuard, type Guard } from '../../../src/oci/http/address-guard.ts';
import { createSend } from '../../../src/oci/http/registry-client.ts';
import type { RegistryRequest, RegistryResponse } from '../../../src/oci/http/transport.ts';
import { failureOf, reply, startServer, stopAfterEach } from '../server.ts';
import { requestTo } from './requests.ts';

/** The server's reaction to a request: it answers, or hangs up before the first byte of an answer. */
type Turn = 'answers' | 'hangs up';

describe('a connection that is kept', () => {
  let guard: Guard;
  let server: Server;
  /** The reactions of each connection to its requests, both in order; after that it hangs up. */
  let script: Turn[][];
  let requests: string[];
  let sockets: Socket[];

  beforeEach(async () => {
    guard = createGuard({ connectTimeoutMs: 20_000, now: Date.now, allow: ['127.0.0.1'] });
    [script, requests, sockets] = [[], [], []];
    server = createServer((socket) => {
      const turns = script[sockets.length] ?? [];
      sockets.push(socket.on('error', () => undefined));
      socket.on('data', (chunk) => {
        requests.push(`${sockets.indexOf(socket)} ${chunk.toString('latin1').split(' ', 1)[0]}`);
        if (turns.shift() === 'answers') socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
        else socket.resetAndDestroy();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(async () => {
    guard.destroy();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  stopAfterEach();

  function ask(more: Partial<RegistryRequest> = {}): Promise<RegistryResponse> {
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    return createSend(guard, 'ours/1')(requestTo(`http://127.0.0.1:${port}/`, more));
  }
  /** The answer arrives a moment before the connection is idle. */
  async function askAndKeep(): Promise<void> {
    await ask();
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  }
  for (const method of ['GET', 'HEAD'] as const) {
    it(`and closed by the server meanwhile costs a ${method} one more try, over another one`, async () => {
      script = [['answers', 'hangs up'], ['answers']];
      await askAndKeep();
      expect(await ask({ method })).to.include({ status: 200 });
      expect(requests).to.deep.equal(['0 GET', `0 ${method}`, `1 ${method}`]);
    });
  }

  const failing: [what: string, second: Turn, more: Partial<RegistryRequest>, expected: string[]][] = [
    ['is tried once more, not for ever', 'hangs up', {}, ['0 GET', '0 GET', '1 GET']],
    ['does not repeat a POST', 'answers', { method: 'POST', body: 'a=b' }, ['0 GET', '0 POST']],
  ];
  for (const [what, second, more, expected] of failing) {
    it(`and closed ${what}`, async () => {
      script = [['answers', 'hangs up'], [second]];
      await askAndKeep();
      expect(await failureOf(ask(more))).to.include({ code: 'unavailable' });
      expect(requests).to.deep.equal(expected);
    });
  }

  it('is the only kind that counts: a new one that is closed at once is a failure of the host', async () => {
    script = [['hangs up'], ['answers']];
    expect(await failureOf(ask())).to.include({ code: 'unavailable' });
    expect(requests).to.deep.equal(['0 GET']);
  });

  it('and closed by a server that does so after each answer makes no request fail', async () => {
    const closing = await startServer();
    closing.on('/', (request, response) => {
      reply(200, {}, 'ok')(request, response);
      // The client has the answer, and has released the connection, before it learns that the connection has ended.
      response.on('finish', () => setImmediate(() => response.socket?.destroy()));
    });
    for (let turn = 0; turn < 60; turn += 1) {
      expect(await ask({ url: new URL(`http://${closing.host}/`) })).to.include({ status: 200 });
      await new Promise(setImmediate);
    }
  });
});
