import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type HealthOptions, serveHealth } from '../../src/observability/health.ts';

const HEAD = 'GET /healthz HTTP/1.1\r\nhost: x\r\n';

describe('the port of metrics and probes', () => {
  let end: AbortController;
  let sockets: Socket[];
  let port: number;
  beforeEach(() => {
    [end, sockets] = [new AbortController(), []];
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    end.abort();
  });

  async function serve(options: Partial<HealthOptions> = {}): Promise<void> {
    const metrics = async () => ({ contentType: 'text/plain; version=0.0.4', text: 'up 1\n' });
    ({ port } = await serveHealth({ address: '127.0.0.1:0', metrics, notReady: () => [], ...options }, end.signal));
  }
  const ask = async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { connection: 'close' } });
    return `${response.status} ${(await response.text()).trim()}`;
  };
  /** Opens a connection and sends a text over it. */
  async function open(text: string): Promise<Socket> {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(text);
    return socket;
  }
  /** Everything that arrives until the server ends the connection. */
  async function untilEnd(socket: Socket): Promise<string> {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    if (!socket.destroyed) await once(socket, 'close');
    return text;
  }

  const answers: [request: string, method: string, missing: readonly string[], expected: string][] = [
    ['/healthz', 'GET', ['pods'], '200 ok'],
    ['/readyz', 'GET', [], '200 ok'],
    ['/readyz?verbose', 'GET', ['pods', 'watch of nodes'], '503 not ready: pods, watch of nodes'],
    ['/metrics', 'GET', [], '200 up 1'],
    ['/metrics', 'HEAD', [], '200'],
    ['/healthz', 'POST', [], '405 only GET'],
    ['/', 'GET', [], '404 not found: /metrics, /healthz, /readyz'],
  ];
  for (const [request, method, missing, expected] of answers) {
    it(`answers ${method} ${request} with ${expected}`, async () => {
      await serve({ notReady: () => missing });
      expect((await ask(request, method)).trim()).to.equal(expected);
    });
  }

  it('answers 500 if the metrics cannot be rendered, and renders them again for the next request', async () => {
    let times = 0;
    await serve({
      async metrics() {
        times += 1;
        if (times === 1) throw new Error('no');
        return { contentType: 'text/plain', text: 'up 1' };
      },
    });
    expect(await ask('/metrics')).to.equal('500 metrics cannot be rendered');
    expect(await ask('/metrics')).to.equal('200 up 1');
  });

  it('keeps at most so many connections, and answers a probe beside those that send half a head', async () => {
    await serve({ limits: { connections: 8, request: 600_000 } });
    const strangers: Socket[] = [];
    for (let count = 0; count < 40; count++) strangers.push(await open(HEAD));
    while (strangers.filter(({ destroyed }) => destroyed).length < 32) await new Promise(setImmediate);
    expect(await ask('/healthz')).to.equal('200 ok');
    expect(
      strangers.slice(0, 32).every(({ destroyed }) => destroyed),
      'the oldest are closed',
    ).to.equal(true);
  });

  it('ends a connection whose request does not arrive in time', async () => {
    await serve({ limits: { request: 50 } });
    expect(await untilEnd(await open(HEAD))).to.match(/^HTTP\/1\.1 408 /);
  });

  it('ends a connection whose head is too large', async () => {
    await serve();
    const large = await open(`${HEAD}x: ${'a'.repeat(9_000)}\r\n\r\n`);
    expect(await untilEnd(large)).to.match(/^HTTP\/1\.1 431 /);
    const fits = await open(`${HEAD}connection: close\r\nx: ${'a'.repeat(7_000)}\r\n\r\n`);
    expect(await untilEnd(fits)).to.match(/^HTTP\/1\.1 200 /);
  });

  it('ends a connection that does not read its answer', async () => {
    const text = 'x'.repeat(32 * 1024 * 1024);
    await serve({ metrics: async () => ({ contentType: 'text/plain', text }), limits: { answer: 50 } });
    const socket = await open('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n');
    socket.pause();
    await once(socket, 'readable');
    // Nothing is read until the server has given up, so the answer is not complete.
    await new Promise((resolve) => setTimeout(resolve, 0));
    const received = await untilEnd(socket.resume());
    expect(received.length).to.be.below(text.length);
  });

  it('ends a connection on which requests arrive before the one before is answered', async () => {
    let times = 0;
    await serve({
      notReady() {
        times += 1;
        return [];
      },
    });
    await untilEnd(await open('GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2_000)));
    // The bytes arrive in a few pieces, and the first request of a piece may be answered.
    expect(times).to.be.below(50);
  });

  it('ends a connection after the answer to a request with a body', async () => {
    await serve();
    const socket = await open('GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999\r\n\r\nx');
    expect(await untilEnd(socket)).to.match(/^HTTP\/1\.1 200 .*connection: close/s);
  });

  it('answers one request after the other over a connection', async () => {
    await serve();
    const socket = await open('');
    for (let time = 0; time < 3; time++) {
      socket.write(`${HEAD}\r\n`);
      const [answer] = await once(socket, 'data');
      expect(String(answer)).to.match(/^HTTP\/1\.1 200 /);
    }
  });

  it('renders the metrics once for all that ask at the same time, and seldom for one that asks all the time', async () => {
    let times = 0;
    await serve({
      async metrics() {
        times += 1;
        await new Promise(setImmediate);
        return { contentType: 'text/plain', text: `rendered ${times}` };
      },
    });
    const together = await Promise.all(Array.from({ length: 20 }, () => ask('/metrics')));
    expect(new Set(together).size).to.be.at.most(times);
    for (let count = 0; count < 60; count++) expect(await ask('/metrics')).to.match(/^200 rendered /);
    expect(times).to.be.below(60);
  });
});
