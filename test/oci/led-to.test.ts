import type { ServerOptions } from 'node:https';
import { expect } from 'chai';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import type { Resolution, ResolverOptions } from '../../src/oci/resolver.ts';
import {
  ANYONE,
  CONFIG,
  failureOf,
  type Harness,
  IMAGE,
  never,
  reply,
  type ScriptedServer,
  sha256,
  startResolver,
  startServer,
  stopAfterEach,
} from './server.ts';

const authority = createAuthority('stores');
const pair = authority.issue('127.0.0.1', ['127.0.0.1']);
const tls: ServerOptions = { cert: pair.certificate, key: pair.key };

const config = JSON.stringify({ os: 'linux', architecture: 'arm64' });
const manifest = JSON.stringify({
  schemaVersion: 2,
  mediaType: IMAGE,
  config: { mediaType: CONFIG, digest: sha256(config), size: 1 },
  layers: [],
});
const ARM64 = [{ os: 'linux', architecture: 'arm64' }];

describe('a host to which a registry redirects', () => {
  let registry: ScriptedServer;
  let store: ScriptedServer;
  let harness: Harness;
  beforeEach(async () => {
    registry = await startServer(tls);
    registry.on('/v2/app/manifests/v1', reply(200, { 'content-type': IMAGE }, manifest));
  });
  stopAfterEach();

  async function startStore(options?: ServerOptions): Promise<ScriptedServer> {
    store = await startServer(options);
    store.on('/blob', reply(200, {}, config));
    return store;
  }
  function blobsAt(scheme: 'http' | 'https'): void {
    registry.on(`/v2/app/blobs/${sha256(config)}`, reply(307, { location: `${scheme}://${store.host}/blob` }));
  }
  /** Loopback is forbidden at redirect targets unless they are named, so these tests need a store. */
  function start(insecure: readonly string[], more: Partial<ResolverOptions> = {}): void {
    harness = startResolver(insecure, { addresses: { allow: ['127.0.0.1/32'] }, ...more });
  }
  const resolve = (): Promise<Resolution> => harness.resolver.resolve(`${registry.host}/app:v1`, ANYONE, never);
  const failure = () => failureOf(resolve());

  it('is named if it cannot be reached', async () => {
    await startStore(tls);
    registry.on(`/v2/app/blobs/${sha256(config)}`, reply(307, { location: 'https://cdn.zoo.invalid/blob' }));
    start([registry.host]);
    const error = await failure();
    expect(error.message).to.match(
      new RegExp(`^${registry.host} leads to cdn.zoo.invalid, which (was not found in the DNS|could not be reached)`),
    );
    expect(error.host).to.deep.equal({ name: 'cdn.zoo.invalid', is: 'blob store' });
  });

  it('is named if it stays silent', async () => {
    await startStore(tls);
    store.on('/blob', () => undefined);
    blobsAt('https');
    start([registry.host, store.host], { timeoutMs: 500 });
    expect((await failure()).message).to.equal(
      `${registry.host} leads to ${store.host}, which did not answer within 0.5 s`,
    );
  });

  it('is named if it refuses, and no login is called refused that it never got', async () => {
    await startStore(tls);
    store.on('/blob', reply(403));
    blobsAt('https');
    start([registry.host, store.host]);
    expect((await failure()).message).to.match(
      new RegExp(`^${registry.host} leads to ${store.host}, which answers 403 Forbidden for the config blob: `),
    );
  });

  it('over TLS, with an unverifiable certificate, is asked if registries.insecure names it', async () => {
    await startStore(tls);
    blobsAt('https');
    start([registry.host, store.host]);
    expect((await resolve()).platforms).to.deep.equal(ARM64);
  });

  it('over TLS, with such a certificate, is refused with the key that allows it', async () => {
    await startStore(tls);
    blobsAt('https');
    start([registry.host]);
    const error = await failure();
    expect(error).to.include({ code: 'unavailable' });
    expect(error.message).to.include(`at ${store.host} that cannot be verified`);
    expect(error.message).to.include(`registries.insecure: ["${store.host}"] skips the verification`);
    expect(store.asked).to.deep.equal([]);
  });

  it('over plain http is asked where registries.insecure names it', async () => {
    await startStore();
    blobsAt('http');
    start([registry.host, store.host]);
    expect((await resolve()).platforms).to.deep.equal(ARM64);
  });

  it('over plain http is asked even with an https URL, if registries.insecure names it', async () => {
    await startStore();
    blobsAt('https');
    start([registry.host, store.host]);
    expect((await resolve()).platforms).to.deep.equal(ARM64);
  });

  it('over plain http is refused where nothing names it, with the key that opens it', async () => {
    await startStore();
    blobsAt('http');
    start([registry.host]);
    const error = await failure();
    expect(error).to.include({ code: 'forbidden-address' });
    expect(error.message).to.equal(
      `${registry.host} redirects from https to http; registries.insecure: ["${store.host}"] allows it`,
    );
    expect(store.asked).to.deep.equal([]);
  });

  it('is asked if the registry itself can be verified', async () => {
    const stranger = createAuthority('stranger').issue('127.0.0.1', ['127.0.0.1']);
    await startStore({ cert: stranger.certificate, key: stranger.key });
    blobsAt('https');
    start([store.host], { authorities: () => [authority.certificate] });
    expect((await resolve()).platforms).to.deep.equal(ARM64);
  });

  it('may be on loopback if the operator named it and the registry', async () => {
    await startStore();
    blobsAt('http');
    start([registry.host, store.host], { addresses: {} });
    expect((await resolve()).platforms).to.deep.equal(ARM64);
  });

  /** How each host is asked: its address policy, and its trust. */
  async function askedThrough(insecure: readonly string[], hops: Record<string, string>): Promise<string[]> {
    await startStore();
    const asked: string[] = [];
    start(insecure, {
      send: async ({ url, trust, policy }) => {
        asked.push(`${url.host} ${policy} ${trust?.id ?? 'verified'}`);
        const location = hops[url.host];
        const answer = location === undefined ? { status: 404, headers: {} } : { status: 307, headers: { location } };
        return { ...answer, body: new Uint8Array(), url };
      },
    });
    await harness.resolver.resolve('registry.test/app:v1', ANYONE, never).catch(() => undefined);
    return asked;
  }

  it('is recognised by its port, even if that is the default one, which a URL drops', async () => {
    const hops = { 'registry.test': 'https://store.test/blob', 'store.test': 'http://old.test/blob' };
    expect(await askedThrough(['registry.test', 'store.test:443', 'old.test:80'], hops)).to.deep.equal([
      'registry.test configured insecure',
      'store.test configured insecure',
      'old.test configured insecure',
    ]);
  });

  it('may not be on loopback if the operator did not name the registry', async () => {
    const hops = { 'registry.test': 'http://store.test/blob' };
    expect(await askedThrough(['store.test'], hops)).to.deep.equal([
      'registry.test registry verified',
      'store.test registry insecure',
    ]);
  });

  describe('for a token', () => {
    function challengeAt(realm: string): void {
      registry.on(`/v2/app/blobs/${sha256(config)}`, reply(200, {}, config));
      store.on('/token', reply(200, {}, '{"token":"t"}'));
      registry.on('/v2/app/manifests/v1', (request, response) => {
        const isHolder = request.headers.authorization === 'Bearer t';
        const challenge = { 'www-authenticate': `Bearer realm="${realm}"` };
        (isHolder ? reply(200, { 'content-type': IMAGE }, manifest) : reply(401, challenge))(request, response);
      });
    }
    const verified = { authorities: () => [authority.certificate] };
    /** Another authority than that of the registry. */
    function unverifiable(): ServerOptions {
      const { certificate, key } = createAuthority('stranger').issue('127.0.0.1', ['127.0.0.1']);
      return { cert: certificate, key };
    }

    it('over plain http is refused, even if it is named, with what to do', async () => {
      await startStore();
      challengeAt(`http://${store.host}/token`);
      start([store.host], verified);
      const error = await failure();
      expect(error).to.include({ code: 'forbidden-address' });
      expect(error.message).to.include('not https, and over https: ').and.include(`${store.host} does not speak TLS`);
      expect(error.message).to.include(
        `its external URL should be https (registries.insecure: ["${registry.host}"] would send logins unencrypted`,
      );
      expect(store.asked).to.deep.equal([]);
      start([registry.host]);
      expect((await resolve()).platforms).to.deep.equal(ARM64);
    });

    it('over https is asked where its address says http on the host of the registry', async () => {
      await startStore(tls);
      challengeAt(`http://${store.host}/token`);
      start([], verified);
      expect((await resolve()).platforms).to.deep.equal(ARM64);
      expect(store.asked[0]).to.match(/^GET \/token/);
    });

    it('is followed to another port of its host, where its certificate is verified', async () => {
      await startStore(tls);
      challengeAt(`https://${registry.host}/old`);
      registry.on('/old', reply(308, { location: `https://${store.host}/token` }));
      start([], verified);
      expect((await resolve()).platforms).to.deep.equal(ARM64);
      await startStore(unverifiable());
      registry.on('/old', reply(308, { location: `https://${store.host}/token` }));
      start([], verified);
      expect((await failure()).message).to.include(`certificate at ${store.host} that cannot be verified`);
      expect(store.asked).to.deep.equal([]);
    });

    it('is not followed to another host, even one at the same address', async () => {
      await startStore(tls);
      challengeAt(`https://${registry.host}/old`);
      registry.on('/old', reply(308, { location: `https://${store.host.replace('127.0.0.1', 'localhost')}/token` }));
      start([], verified);
      expect(await failure()).to.include({ code: 'denied' });
      expect(store.asked).to.deep.equal([]);
    });

    it('with an unverifiable certificate is refused, with the keys that allow it', async () => {
      await startStore(unverifiable());
      challengeAt(`https://${store.host}/token`);
      start([store.host], verified);
      expect((await failure()).message).to.include(
        `registries.insecure: ["${registry.host}", "${store.host}"] skips the verification`,
      );
      start([registry.host]);
      expect((await failure()).message).to.include(`registries.insecure: ["${store.host}"] skips the verification`);
      start([registry.host, store.host]);
      expect((await resolve()).platforms).to.deep.equal(ARM64);
    });
  });
});
