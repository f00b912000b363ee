import { expect } from 'chai';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import { createProxySelector } from '../../../src/kit/network/forward-proxy.ts';
import type { ImageError } from '../../../src/oci/errors.ts';
import { createGuard, type Guard } from '../../../src/oci/http/address-guard.ts';
import type { RegistryRequest, RegistryResponse } from '../../../src/oci/http/transport.ts';
import { insecureTrust, type Trust } from '../../../src/oci/http/trust.ts';
import { type ForwardProxyOptions, type ForwardProxyServer, startForwardProxy } from '../../support/forward-proxy.ts';
import { failureOf, reply, type ScriptedServer, startServer, stopAfterEach } from '../server.ts';
import { requestTo, sendThrough } from './requests.ts';

describe('a request through a proxy', () => {
  const authority = createAuthority('registries');
  const pair = authority.issue('registry', ['registry.example.com']);
  const trust: Trust = { id: 'own', verify: true, plain: false, authorities: [authority.certificate], clients: [] };
  let server: ScriptedServer;
  let plain: ScriptedServer;
  let proxy: ForwardProxyServer | undefined;
  let guard: Guard | undefined;

  beforeEach(async () => {
    server = await startServer({ cert: pair.certificate, key: pair.key });
    plain = await startServer();
    server.on('/', reply(200, {}, 'secure'));
    plain.on('/', reply(200, {}, 'plain'));
  });
  afterEach(async () => {
    guard?.destroy();
    await proxy?.stop();
    proxy = undefined;
  });
  stopAfterEach();

  type Ask = (url: string, more?: Partial<RegistryRequest>) => Promise<RegistryResponse>;
  /** Only the proxy can resolve these names. */
  async function start(
    options: ForwardProxyOptions & { sends?: string; variables?: Record<string, string>; authorities?: string[] } = {},
  ): Promise<Ask> {
    const started = await startForwardProxy({
      dial: (host) => {
        const [, name, port] = /^(.*):(\d+)$/.exec(host) ?? [];
        if (name === 'closed.example.com') return '127.0.0.1:1';
        return port === '80' || port === '8080' || name === 'plain.example.com' ? plain.host : server.host;
      },
      ...options,
    });
    proxy = started;
    const login = options.sends ?? options.login;
    const through = login === undefined ? started.url : started.url.replace('//', `//${login}@`);
    guard = createGuard({
      proxy: createProxySelector({ HTTPS_PROXY: through, HTTP_PROXY: through, ...options.variables }),
      connectTimeoutMs: 20_000,
      now: Date.now,
      authorities: () => options.authorities ?? [],
      lookup: (_name, _options, callback) => callback(Object.assign(new Error(), { code: 'ENOTFOUND' }), []),
    });
    const send = sendThrough(guard);
    const usual = { registry: 'registry.example.com', headers: { accept: 'a/b' }, trust };
    return (url, more = {}) => send(requestTo(url, { ...usual, ...more }));
  }
  const textOf = async (response: Promise<RegistryResponse>): Promise<string> =>
    Buffer.from((await response).body).toString();
  it('connects to the name, which only the proxy resolves, and speaks TLS with the registry', async () => {
    const ask = await start();
    expect(await textOf(ask('https://registry.example.com/'))).to.equal('secure');
    expect(await textOf(ask('https://registry.example.com/'))).to.equal('secure');
    await ask('https://registry.example.com:5000/');
    expect(new Set(proxy?.targets)).to.deep.equal(
      new Set(['CONNECT registry.example.com:443', 'CONNECT registry.example.com:5000']),
    );
    expect(proxy?.headers[0]).to.not.have.any.keys('proxy-authorization', 'authorization', 'accept');
    expect(server.headers[0]).to.include({ host: 'registry.example.com', 'user-agent': 'ours/1', accept: 'a/b' });
    expect(guard?.isPublic('registry.example.com')).to.equal(true);
  });

  it("over plain http gives the proxy the registry's name", async () => {
    const ask = await start({ login: 'user:secret' });
    expect(await textOf(ask('http://registry.example.com:8080/?a=b', { method: 'POST', body: 'x' }))).to.equal('plain');
    expect(proxy?.targets).to.deep.equal(['POST http://registry.example.com:8080/?a=b']);
    expect(plain.asked).to.deep.equal(['POST /?a=b']);
    expect(plain.headers[0]).to.include({ host: 'registry.example.com:8080' });
    expect(plain.headers[0]).to.not.have.property('proxy-authorization');
  });

  it('is not sent through it if NO_PROXY says so', async () => {
    const ask = await start({ variables: { NO_PROXY: '.example.com' } });
    expect(await failureOf(ask('https://registry.example.com/'))).to.include({ code: 'unavailable' });
    expect(proxy?.targets).to.deep.equal([]);
  });

  it("logs in, and an endpoint's headers cannot change the login", async () => {
    const ask = await start({ login: 'user:secret', sends: 'user:secre' });
    const error = await failureOf(ask('https://registry.example.com/'));
    expect(error.message)
      .to.match(/answers 407 .*: the user or password in HTTPS_PROXY is wrong$/)
      .and.not.match(/secre/);
    await proxy?.stop();
    const other = await start({ login: 'user:secret' });
    const endpointHeaders = { 'Proxy-Authorization': 'Basic x', 'x-key': 'k' };
    expect(await textOf(other('https://registry.example.com/', { endpointHeaders }))).to.equal('secure');
    expect(server.headers[0]).to.include({ 'x-key': 'k' }).and.not.have.property('proxy-authorization');
    expect(proxy?.headers[0]).to.not.have.property('x-key');
  });

  for (const url of ['https://registry.example.com/', 'http://registry.example.com/']) {
    describe(`to ${url}`, () => {
      const told = (error: ImageError, problem: RegExp): void => {
        expect(error).to.include({ code: 'unavailable', temporary: true, endpoint: 'registry.example.com' });
        expect(error.message).to.match(
          /^registry\.example\.com could not be reached: the proxy 127\.0\.0\.1:\d+ \(HTTPS?_PROXY\) /,
        );
        expect(error.message).to.match(problem);
      };

      it('reports a proxy that requires a login', async () => {
        const error = await failureOf((await start({ refusal: 407 }))(url));
        told(error, /answers 407 Proxy Authentication Required: HTTPS?_PROXY needs a user and password$/);
      });

      it('reports a proxy that is down', async () => {
        const ask = await start();
        await proxy?.stop();
        told(await failureOf(ask(url)), /could not be reached \(ECONNREFUSED\)$/);
        proxy = undefined;
      });
    });
  }

  const failing: [what: string, refusal: number | undefined, url: string, problem: RegExp][] = [
    ['refuses', 403, 'https://registry.example.com/', /answers 403 Forbidden$/],
    ['does not reach the registry', undefined, 'https://closed.example.com/', /answers 502 Bad Gateway$/],
    ['hangs up', 0, 'https://registry.example.com/', /did not open a connection/],
  ];
  for (const [what, refusal, url, problem] of failing) {
    it(`reports a proxy that ${what}`, async () => {
      const ask = await start(refusal === undefined ? {} : { refusal });
      expect((await failureOf(ask(url))).message)
        .to.include('(HTTPS_PROXY)')
        .and.match(problem);
    });
  }

  for (const url of ['https://169.254.169.254/', 'http://0/']) {
    it(`to ${url} is refused before the proxy gets it`, async () => {
      const ask = await start();
      expect(await failureOf(ask(url))).to.include({ code: 'forbidden-address' });
      expect(proxy?.targets).to.deep.equal([]);
    });
  }

  it('that is redirected to a forbidden address is refused', async () => {
    server.on('/', reply(302, { location: 'https://169.254.169.254/latest' }));
    const ask = await start();
    expect(await failureOf(ask('https://registry.example.com/'))).to.include({ code: 'forbidden-address' });
    expect(proxy?.targets).to.deep.equal(['CONNECT registry.example.com:443']);
  });

  it('verifies the registry behind it', async () => {
    const ask = await start();
    const unknown = await failureOf(
      ask('https://registry.example.com/', { trust: { ...trust, id: 'none', authorities: [] } }),
    );
    expect(unknown.message).to.match(/certificate.*UNABLE_TO_VERIFY_LEAF_SIGNATURE.*registries\.caFile/);
    const wrong = await failureOf(ask('https://other.example.com/'));
    expect(wrong.message).to.match(/certificate.*other\.example\.com.*ERR_TLS_CERT_ALTNAME_INVALID/);
    expect(server.asked).to.deep.equal([]);
  });

  it('finds plain http behind it, if that is allowed', async () => {
    const ask = await start();
    const url = 'https://plain.example.com/';
    expect(await textOf(ask(url, { trust: insecureTrust }))).to.equal('plain');
    expect(await textOf(ask(url, { trust: insecureTrust }))).to.equal('plain');
    expect(proxy?.targets).to.deep.equal([
      'CONNECT plain.example.com:443',
      ...Array(2).fill('GET http://plain.example.com/'),
    ]);
    await proxy?.stop();
    const strict = await start();
    expect(await failureOf(strict(url))).to.include({ code: 'unavailable' });
  });

  it('speaks TLS with the proxy too, verified with the configured authorities', async () => {
    const company = createAuthority('company');
    const tls = company.issue('proxy', ['127.0.0.1']);
    const ask = await start({ tls, authorities: [company.certificate] });
    expect(await textOf(ask('https://registry.example.com/'))).to.equal('secure');
    expect(await textOf(ask('http://registry.example.com/'))).to.equal('plain');
    await proxy?.stop();
    const other = await start({ tls });
    const error = await failureOf(
      other('https://registry.example.com/', { trust: { ...trust, authorities: [company.certificate] } }),
    );
    expect(error.message).to.match(/the proxy .* could not be reached \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)/);
    const third = createAuthority('third');
    await proxy?.stop();
    const wrong = await start({ tls: third.issue('proxy', ['proxy.example.com']), authorities: [third.certificate] });
    const mismatch = await failureOf(wrong('https://registry.example.com/'));
    expect(mismatch.message).to.match(/the proxy .* could not be reached \(ERR_TLS_CERT_ALTNAME_INVALID\)/);
  });
});
