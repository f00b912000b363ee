import { createServer, type Server } from 'node:http';
import { expect } from 'chai';
import { listen } from '../../../src/kit/network/listen.ts';
import { ImageError } from '../../../src/oci/errors.ts';
import { createGuard, type Guard, type GuardOptions } from '../../../src/oci/http/address-guard.ts';
import type { AddressPolicy } from '../../../src/oci/http/trust.ts';
import { insecureTrust } from '../../../src/oci/http/trust.ts';
import { until } from '../server.ts';

describe('a guarded connection', () => {
  let guard: Guard;
  const addresses = new Map([
    ['evil.example', ['93.184.216.34', '127.0.0.1']],
    ['metadata.example', ['169.254.169.254']],
    ['localhost', ['127.0.0.1']],
    ['registry.example', ['127.0.0.1']],
  ]);
  const start = (more: Partial<GuardOptions> = {}): void => {
    guard = createGuard({
      connectTimeoutMs: 20_000,
      now: Date.now,
      lookup: (name, _options, callback) =>
        callback(
          null,
          (addresses.get(name) ?? []).map((address) => ({ address, family: 4 })),
        ),
      ...more,
    });
  };
  beforeEach(() => start());
  afterEach(() => guard.destroy());

  async function ask(url: string, passage: Omit<Parameters<Guard['request']>[0], 'url'>): Promise<number> {
    const { signal } = new AbortController();
    const { statusCode, body } = await guard.request(
      { url: new URL(url), ...passage },
      { method: 'GET', headers: {}, signal },
    );
    await body.dump();
    // Only then is its connection free for another request.
    await new Promise((resolve) => setImmediate(resolve));
    return statusCode;
  }
  const failure = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

  // The spellings that a URL reads as an address; addresses.test.ts has the addresses.
  const refused: [policy: AddressPolicy, urls: string][] = [
    ['registry', 'http://127.1:1/ http://2130706433:1/ http://0x7f.1:1/ http://017700000001:1/ http://127.0.0.1.:1/'],
    ['registry', 'http://%31%32%37.0.0.1:1/ http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1:1/ http://evil.example:1/'],
    ['registry', 'http://[::ffff:127.0.0.1]:1/ http://[0:0:0:0:0:0:0:1]:1/ http://localhost:1/'],
    ['configured', 'http://0:1/ http://[::]:1/ http://169.254.43518/ https://169.254.169.254/'],
    ['configured', 'http://metadata.example:1/'],
    ['public', 'http://10.0.0.1:1/'],
  ];
  for (const [policy, url] of refused.flatMap(([by, urls]) => urls.split(' ').map((each) => [by, each] as const))) {
    it(`to ${url} is refused under "${policy}", and the address is not named`, async () => {
      const error = await failure(ask(url, { policy }));
      expect(error).to.be.instanceOf(ImageError).that.includes({ code: 'forbidden-address' });
      if (url.includes('example')) expect(String(error)).to.not.match(/\d+\.\d+\.\d+\.\d+/);
      if (url.includes('localhost')) expect(String(error)).to.include('registries.mirrors: {"localhost:1"');
    });
  }

  it('to a name of the API server is refused, through a proxy as well', async () => {
    const proxy = { variable: 'HTTPS_PROXY', host: 'p.example', origin: 'http://p.example' };
    for (const more of [{}, { proxy: () => proxy }]) {
      guard.destroy();
      start({ ownNames: ['api.example'], ...more });
      const error = await failure(ask('https://api.example./', { policy: 'registry' }));
      expect(error).to.be.instanceOf(ImageError).that.includes({ code: 'forbidden-address' });
      expect(String(error)).to.contain('registries.insecure: ["api.example."]');
    }
  });

  it('to loopback is made under "configured"', async () => {
    expect(await failure(ask('http://127.0.0.1:1/', { policy: 'configured' }))).to.include({ code: 'ECONNREFUSED' });
  });

  describe('to a server', () => {
    let server: Server;
    let url: string;
    let connections: number;
    let asked: number;
    beforeEach(async () => {
      connections = 0;
      asked = 0;
      server = createServer((_request, response) => {
        asked += 1;
        response.end();
      });
      server.on('connection', () => {
        connections += 1;
      });
      url = `http://registry.example:${await listen(server, '127.0.0.1:0')}/`;
    });
    afterEach(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    const open = (): Promise<number> =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
      );

    it('whose name leads elsewhere the next time is judged again', async () => {
      guard.destroy();
      start({ allow: ['127.0.0.1'] });
      expect(await ask(url, { policy: 'registry' })).to.equal(200);
      server.closeAllConnections();
      addresses.set('registry.example', ['127.0.0.1', '127.0.0.2']);
      try {
        await until(async () => (await open()) === 0);
        const error = await failure(ask(url, { policy: 'registry' }));
        expect(error).to.be.instanceOf(ImageError).that.includes({ code: 'forbidden-address' });
        expect(asked).to.equal(1);
      } finally {
        addresses.set('registry.example', ['127.0.0.1']);
      }
    });

    it('is used again under the same policy and trust, and never under another', async () => {
      const trust = { ...insecureTrust, id: 'other' };
      const passages: Parameters<typeof ask>[1][] = [
        { policy: 'configured' },
        { policy: 'configured', trust: insecureTrust },
        { policy: 'configured', trust },
      ];
      for (const passage of [...passages, ...passages]) await ask(url, passage);
      expect(asked).to.equal(6);
      expect(connections).to.equal(3);
    });

    it('is replaced when the authorities change, but not when they are only read again', async () => {
      let authorities: readonly string[] = [];
      guard.destroy();
      start({ authorities: () => [...authorities] });
      await ask(url, { policy: 'configured' });
      await ask(url, { policy: 'configured' });
      expect(connections).to.equal(1);
      authorities = ['another'];
      // The text is not a certificate, and OpenSSL notices that only if there is none at all.
      await ask(url, { policy: 'configured' }).catch(() => undefined);
      await until(async () => (await open()) === connections - 1);
    });

    it('is kept for a limited number of trusts', async () => {
      const trusts = Array.from({ length: 80 }, (_, index) => ({ ...insecureTrust, id: String(index) }));
      for (const trust of trusts) expect(await ask(url, { policy: 'configured', trust })).to.equal(200);
      expect(connections).to.equal(80);
      await until(async () => (await open()) <= 64);
      expect(await ask(url, { policy: 'configured', trust: { ...insecureTrust, id: '0' } })).to.equal(200);
    });

    it('that is no longer kept lets its requests end', async () => {
      const answers: (() => void)[] = [];
      server.removeAllListeners('request');
      server.on('request', (request, response) => {
        if (request.url === '/slow') answers.push(() => response.end());
        else response.end();
      });
      const slow = ask(`${url}slow`, { policy: 'configured' });
      await until(() => answers.length === 1);
      for (let index = 0; index < 64; index += 1) {
        await ask(url, { policy: 'configured', trust: { ...insecureTrust, id: String(index) } });
      }
      for (const answer of answers) answer();
      expect(await slow).to.equal(200);
    });

    it('ends with the guard, and so do its requests', async () => {
      server.removeAllListeners('request');
      const arrived = new Promise((resolve) => server.on('request', resolve));
      const slow = failure(ask(url, { policy: 'configured' }));
      await arrived;
      guard.destroy();
      expect(await slow).to.be.instanceOf(Error);
      expect(await failure(ask(url, { policy: 'configured' }))).to.be.instanceOf(Error);
    });
  });
});
