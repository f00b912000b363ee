import { createServer } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { createServer as createFront, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { expect } from 'chai';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import { listen } from '../../../src/kit/network/listen.ts';
import { createGuard, type Guard } from '../../../src/oci/http/address-guard.ts';
import { createSend } from '../../../src/oci/http/registry-client.ts';
import type { RegistryRequest, RegistryResponse, SendRequest } from '../../../src/oci/http/transport.ts';
import { insecureTrust, type Trust } from '../../../src/oci/http/trust.ts';
import { failureOf, reply, type ScriptedServer, startServer, stopAfterEach } from '../server.ts';
import { requestTo, sendThrough } from './requests.ts';

const authority = createAuthority('registries');
const stranger = createAuthority('stranger');
const pair = authority.issue('registry', ['registry.example.com', 'other.example.com']);
const tls: ServerOptions = { cert: pair.certificate, key: pair.key };
const own: Trust = { id: 'own', verify: true, plain: false, authorities: [authority.certificate], clients: [] };

describe('a connection to a registry', () => {
  let guard: Guard;
  let send: SendRequest;
  let authorities: readonly string[];
  const lookups = new Map<string, string>();

  beforeEach(() => {
    authorities = [];
    lookups.clear();
    guard = createGuard({
      connectTimeoutMs: 20_000,
      now: Date.now,
      // The test servers are on this address.
      allow: ['127.0.0.1'],
      authorities: () => authorities,
      lookup: (name, _options, callback) => {
        const code = lookups.get(name);
        if (code !== undefined) return callback(Object.assign(new Error('192.0.2.1'), { code }), []);
        callback(null, [{ address: '127.0.0.1', family: 4 }]);
      },
    });
    send = sendThrough(guard);
  });
  afterEach(() => guard.destroy());
  stopAfterEach();

  async function start(options?: ServerOptions): Promise<ScriptedServer & { readonly port: string }> {
    const server = await startServer(options);
    server.on('/', reply(200, {}, 'hello'));
    return { ...server, port: server.host.split(':')[1] ?? '' };
  }

  const ask = (url: string, more: Partial<RegistryRequest> = {}): Promise<RegistryResponse> =>
    send(requestTo(url, { headers: { accept: 'a/b' }, ...more }));

  describe('over TLS', () => {
    let server: ScriptedServer & { readonly port: string };
    let url: string;
    beforeEach(async () => {
      server = await start(tls);
      url = `https://registry.example.com:${server.port}/`;
    });

    it('is verified with the authorities of its trust only', async () => {
      expect(await ask(url, { trust: own })).to.include({ status: 200 });
      const error = await failureOf(ask(url));
      expect(error).to.include({ code: 'unavailable', endpoint: 'the-registry' });
      expect(error.message).to.equal(
        `the-registry has a certificate at registry.example.com:${server.port} that cannot be verified ` +
          '(UNABLE_TO_VERIFY_LEAF_SIGNATURE); registries.caFile adds the authority that signed it, ' +
          `registries.insecure: ["registry.example.com:${server.port}"] skips the verification`,
      );
      const other = { ...own, id: 'other', authorities: [stranger.certificate] };
      expect((await failureOf(ask(url, { trust: other }))).message).to.match(/certificate.*cannot be verified/);
      expect(server.asked).to.have.length(1);
    });

    it('is verified with the configured authorities of the moment', async () => {
      authorities = [stranger.certificate, authority.certificate];
      expect(await ask(url)).to.include({ status: 200 });
      expect(await ask(url, { trust: { ...own, id: 'none', authorities: [] } })).to.include({ status: 200 });
      authorities = [stranger.certificate];
      expect((await failureOf(ask(url))).message).to.match(/certificate.*cannot be verified/);
    });

    const yesterday = authority.issue('old', ['registry.example.com'], new Date(Date.now() - 1000));
    for (const [what, name, shown, code] of [
      ['for another name', 'third', pair, 'ERR_TLS_CERT_ALTNAME_INVALID'],
      ['that has expired', 'registry', yesterday, 'CERT_HAS_EXPIRED'],
    ] as const) {
      it(`with a certificate ${what} is refused`, async () => {
        const { port } = await start({ cert: shown.certificate, key: shown.key });
        const error = await failureOf(ask(`https://${name}.example.com:${port}/`, { trust: own }));
        expect(error.message).to.match(
          new RegExp(` at ${name}\\.example\\.com:\\d+ .*\\(${code}\\); registries\\.insecure`),
        );
      });
    }

    it('of a hosts.toml names that file as the place to allow it', async () => {
      const trust = { ...own, id: 'file', authorities: [], file: '/certs.d/registry.example.com/hosts.toml' };
      expect((await failureOf(ask(url, { trust }))).message).to.match(
        /; ca in \/certs\.d\/registry\.example\.com\/hosts\.toml names the authority .*, skip_verify = true in \/certs/,
      );
      const { host } = await start();
      expect((await failureOf(ask(`https://${host}/`, { trust }))).message).to.include(
        `if it speaks plain http, "http://${host}" in /certs.d/registry.example.com/hosts.toml allows it`,
      );
    });

    it('is not verified if the trust says so', async () => {
      const trust = { ...own, id: 'skip', authorities: [], verify: false };
      expect(await ask(url, { trust })).to.include({ status: 200 });
      expect(await ask(url, { trust: insecureTrust, policy: 'configured' })).to.include({ status: 200 });
    });

    it('is verified for a host that the operator named in another way', async () => {
      expect((await failureOf(ask(url, { policy: 'configured' }))).message).to.match(/certificate/);
    });
  });

  describe('without TLS', () => {
    it('is made only if the trust allows it, or the URL says so', async () => {
      const { host, asked } = await start();
      for (const trust of [undefined, own, { ...insecureTrust, id: 'skip', plain: false }]) {
        const error = await failureOf(ask(`https://${host}/`, trust === undefined ? {} : { trust }));
        expect(error).to.include({ code: 'unavailable' });
        expect(error.message).to.equal(
          `the-registry could not be reached: ${host} does not speak TLS (ERR_SSL_WRONG_VERSION_NUMBER); ` +
            `if it speaks plain http, registries.insecure: ["${host}"] allows it`,
        );
      }
      expect(asked).to.deep.equal([]);
      await ask(`http://${host}/`);
      await ask(`http://${host}/`, { trust: own });
      await ask(`https://${host}/`, { trust: insecureTrust });
      expect(asked).to.have.length(3);
    });

    describe('or with it, as the registry requires', () => {
      /** What the registry does at the moment with data on its port. */
      let phase: 'tls' | 'plain' | 'hangs up on TLS';
      let plainAnswer: ReturnType<typeof reply>;
      let seen: string[];
      let url: string;
      let end: () => Promise<void>;
      beforeEach(async () => {
        [phase, seen] = ['tls', []];
        plainAnswer = reply(200);
        const open = createServer((request, response) => {
          seen.push('http');
          // Go's server answers this to plain http on a TLS port.
          (phase === 'plain' ? plainAnswer : reply(400, { connection: 'close' }))(request, response);
        });
        const secure = createTlsServer(tls, (request, response) => {
          seen.push('https');
          reply(200, { connection: 'close' })(request, response);
        });
        const sockets = new Set<Socket>();
        const front = createFront((socket) => {
          sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
          socket.once('readable', () => {
            const first: Buffer | null = socket.read();
            if (first === null) return;
            const isTls = first[0] === 0x16;
            if (phase === 'hangs up on TLS' && isTls) return socket.destroy();
            socket.unshift(first);
            (isTls && phase === 'tls' ? secure : open).emit('connection', socket);
          });
        });
        url = `https://127.0.0.1:${await listen(front, '127.0.0.1:0')}/`;
        end = async () => {
          for (const socket of sockets) socket.destroy();
          await new Promise((resolve) => front.close(resolve));
        };
      });
      afterEach(() => end());
      const insecure = (more: Partial<Trust> = {}) => ask(url, { trust: { ...insecureTrust, ...more } });

      it('is not chosen because the registry was being restarted at the first request', async () => {
        phase = 'hangs up on TLS';
        const error = await failureOf(insecure());
        expect(error.message).to.match(/^the-registry leads to [a-z0-9.:]+, which closed the connection early/);
        expect(seen).to.deep.equal(['http']);
        phase = 'tls';
        expect(await insecure()).to.include({ status: 200 });
        expect(seen).to.deep.equal(['http', 'https']);
      });

      it('is replaced by TLS when the registry gets it', async () => {
        phase = 'plain';
        expect(await insecure()).to.include({ status: 200 });
        phase = 'tls';
        expect(await insecure()).to.include({ status: 200 });
        expect(await insecure()).to.include({ status: 200 });
        expect(seen).to.deep.equal(['http', 'http', 'https', 'https']);
      });

      it('is chosen when the registry loses TLS, but not while it only hangs up', async () => {
        expect(await insecure()).to.include({ status: 200 });
        phase = 'hangs up on TLS';
        await failureOf(insecure());
        expect(seen).to.deep.equal(['https']);
        phase = 'plain';
        expect(await insecure()).to.include({ status: 200 });
        expect(seen).to.deep.equal(['https', 'http']);
      });

      it("keeps the registry's own 400, which it answers to wrong credentials", async () => {
        phase = 'plain';
        plainAnswer = reply(400);
        expect(await insecure()).to.include({ status: 400 });
        plainAnswer = reply(200);
        expect(await insecure()).to.include({ status: 200 });
        plainAnswer = reply(400);
        expect(await insecure()).to.include({ status: 400 });
      });

      for (const [what, answer] of Object.entries({
        'fails, as a proxy answers for it': () => reply(503),
        'leads to https': () => reply(301, { location: url.replace(/:\d+/, ':1') }),
      })) {
        it(`is not remembered after an answer that ${what}`, async () => {
          phase = 'plain';
          plainAnswer = answer();
          await insecure().catch(() => undefined);
          phase = 'tls';
          seen = [];
          expect(await insecure()).to.include({ status: 200 });
          expect(seen).to.deep.equal(['https']);
        });
      }

      it('is remembered by trust: another one may find something else', async () => {
        phase = 'plain';
        await insecure();
        phase = 'tls';
        seen = [];
        await insecure({ id: 'other' });
        expect(seen).to.deep.equal(['https']);
      });
    });
  });

  describe('to a registry that requires a client certificate', () => {
    const clients = createAuthority('clients');
    const login = clients.issueClient('controller');
    const mutual: ServerOptions = { ...tls, requestCert: true, ca: clients.certificate };

    it('shows the certificate, the first of several that have the same type of key', async () => {
      const { port } = await start(mutual);
      const url = `https://registry.example.com:${port}/`;
      expect(await ask(url, { trust: { ...own, clients: [login] } })).to.include({ status: 200 });
      const several = { ...own, id: 'several', clients: [login, stranger.issueClient('x')] };
      expect(await ask(url, { trust: several })).to.include({ status: 200 });
      // The server's certificate is not verified, and the client's is still sent.
      const unverified = { ...several, id: 'unverified', verify: false, authorities: [] };
      expect(await ask(url, { trust: unverified })).to.include({ status: 200 });
    });

    const rows: [what: string, trust: Trust][] = [
      ['none', own],
      ["another's", { ...own, id: 'other', clients: [stranger.issueClient('x')] }],
    ];
    for (const [what, trust] of rows) {
      it(`reports that it may be required, after ${what}`, async () => {
        const { port, asked } = await start(mutual);
        const error = await failureOf(ask(`https://registry.example.com:${port}/`, { trust }));
        expect(error).to.include({ code: 'unavailable' });
        expect(error.message).to.match(
          /^the-registry leads to [a-z0-9.:]+, which closed the connection early \(.*\); registries that require a client certificate/,
        );
        expect(asked).to.deep.equal([]);
      });
    }

    for (const code of ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA']) {
      it(`reports it after ${code}, which does not mean plain http`, async () => {
        const urls: string[] = [];
        const request: Guard['request'] = async ({ url }) => {
          urls.push(url.protocol);
          throw Object.assign(new Error('192.0.2.1'), { code });
        };
        send = createSend({ ...guard, request }, 'ours/1');
        const error = await failureOf(ask('https://registry.example.com/', { trust: insecureTrust }));
        expect(error.message).to.equal(
          `the-registry could not be reached: registry.example.com requires a client certificate, or refused the configured one (${code})`,
        );
        expect(urls).to.deep.equal(['https:']);
      });
    }

    for (const [what, client] of Object.entries({
      'has a key of another': { certificate: login.certificate, key: clients.issueClient('x').key },
      'is none': { certificate: 'hello', key: login.key },
      'has a key that is none': { certificate: login.certificate, key: 'hello' },
    })) {
      it(`reports that its own ${what}`, async () => {
        const error = await failureOf(ask('https://registry.example.com/', { trust: { ...own, clients: [client] } }));
        expect(error).to.include({ code: 'unavailable' });
        expect(error.message).to.match(/client certificate or key cannot be used \(ERR_OSSL_/);
      });
    }

    it("sends neither it nor headers of the endpoint to a redirect's target; its authorities apply there", async () => {
      const other = await start({ ...mutual, rejectUnauthorized: false });
      let shown = true;
      other.on('/', (request, response) => {
        shown = !(request.socket instanceof TLSSocket) || Object.keys(request.socket.getPeerCertificate()).length > 0;
        reply(200, {}, 'there')(request, response);
      });
      const { port, headers, on } = await start(mutual);
      on('/', reply(307, { location: `https://other.example.com:${other.port}/` }));
      const response = await ask(`https://registry.example.com:${port}/`, {
        trust: { ...own, clients: [login] },
        endpointHeaders: { 'x-key': 'secret', authorization: 'Basic x' },
      });
      expect(Buffer.from(response.body).toString()).to.equal('there');
      expect(shown).to.equal(false);
      expect(headers[0]).to.include({ 'x-key': 'secret', authorization: 'Basic x' });
      expect(other.headers[0]).to.not.have.any.keys('x-key', 'authorization');
    });
  });

  describe('sends', () => {
    it("the endpoint's headers, which never replace the program's own", async () => {
      const { host, headers } = await start();
      const names = ['ACCEPT', 'authorization', 'User-Agent', 'Host', 'accept-encoding', 'connection'];
      const theirs = Object.fromEntries([...names, 'Proxy-Authorization'].map((name) => [name, 'theirs']));
      await ask(`http://${host}/`, {
        headers: { Accept: 'a/b', Authorization: 'Bearer ours' },
        endpointHeaders: { 'X-Key': 'k', 'Content-Length': '7', 'Transfer-Encoding': 'chunked', ...theirs },
      });
      expect(headers[0]).to.deep.equal({
        'x-key': 'k',
        accept: 'a/b',
        authorization: 'Bearer ours',
        'user-agent': 'ours/1',
        'accept-encoding': 'identity',
        host,
        connection: 'keep-alive',
      });
    });

    it('the body of a POST', async () => {
      const { host, on } = await start();
      on('/', async (request, response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk);
        const said = `${request.method} ${request.headers['content-type']} ${Buffer.concat(chunks)}`;
        reply(200, {}, said)(request, response);
      });
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const { body } = await ask(`http://${host}/`, { method: 'POST', headers, body: 'a=b&c=d' });
      expect(Buffer.from(body).toString()).to.equal('POST application/x-www-form-urlencoded a=b&c=d');
    });
  });

  describe('that fails says whether there was a connection to the host, and to which:', () => {
    const rows: [what: string, url: (host: string, tlsPort: string) => string, isReached: boolean][] = [
      ['none to a closed port', () => 'http://registry.example.com:1/', false],
      ['none with an unverified certificate', (_host, port) => `https://registry.example.com:${port}/`, false],
      ['none over TLS with a server that does not speak it', (host) => `https://${host}/`, false],
      ['one that the server closes', (host) => `http://${host}/closes`, true],
      ['one on which the server is silent', (host) => `http://${host}/silent`, true],
      ['one on which the body ends early', (host) => `http://${host}/short`, true],
    ];
    for (const [what, urlOf, isReached] of rows) {
      it(what, async () => {
        const [plain, secure] = await Promise.all([start(), start(tls)]);
        plain.on('/closes', (request) => request.socket.destroy());
        plain.on('/silent', () => undefined);
        plain.on('/short', (request, response) => {
          response.writeHead(200, { 'content-length': '10' });
          response.write('five.', () => request.socket.destroy());
        });
        const url = urlOf(plain.host, secure.port);
        // Only silence lasts as long as the request may.
        const error = await failureOf(ask(url, url.endsWith('/silent') ? { timeoutMs: 1_000 } : {}));
        expect(['unavailable', 'timeout']).to.include(error.code);
        expect(error.unreachable).to.equal(isReached ? undefined : new URL(url).host);
      });
    }
  });

  describe('whose name cannot be looked up', () => {
    const rows: [problem: string, code: string, message: string, kind: string][] = [
      ['is unknown', 'ENOTFOUND', 'was not found in the DNS (ENOTFOUND)', 'unavailable'],
      ['is not answered', 'ETIMEOUT', 'could not be reached: the DNS server did not answer', 'timeout'],
      ['fails', 'EAI_FAIL', 'could not be reached (EAI_FAIL)', 'unavailable'],
    ];
    for (const [problem, code, what, kind] of rows) {
      it(`because it ${problem} is ${kind}`, async () => {
        const message = `the-registry leads to dead.example.com, which ${what}`;
        lookups.set('dead.example.com', code);
        const error = await failureOf(ask('https://dead.example.com/'));
        expect(error).to.include({ message, code: kind, temporary: true, unreachable: 'dead.example.com' });
      });
    }
  });
});
