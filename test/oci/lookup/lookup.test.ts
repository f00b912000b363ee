import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import type { Access } from '../../../src/oci/credentials/keyring.ts';
import { createRoutes, type Mirrors } from '../../../src/oci/endpoints/mirrors.ts';
import type { ResolverOptions } from '../../../src/oci/resolver.ts';
import {
  ANYONE,
  type Answer,
  byLogin,
  failureOf,
  type Harness,
  INDEX,
  indexOf,
  never,
  pullSecret,
  putImage,
  reply,
  type ScriptedServer,
  sha256,
  startResolver,
  startServer,
  stopAfterEach,
  until,
} from '../server.ts';

describe('the lookup over mirrors', () => {
  let source: ScriptedServer;
  let first: ScriptedServer;
  let second: ScriptedServer;
  let harness: Harness;
  beforeEach(async () => {
    [source, first, second] = await Promise.all([startServer(), startServer(), startServer()]);
  });
  stopAfterEach();

  function start(mirrors: Partial<Mirrors[string]> = {}, overrides: Partial<ResolverOptions> = {}): void {
    const insecure = [source, first, second].map(({ host }) => host);
    const endpoints = insecure.slice(1);
    const { endpointsOf } = createRoutes({
      mirrors: { [source.host]: { endpoints, fallback: true, credentials: 'mirror', ...mirrors } },
      insecure,
      hosts: () => undefined,
    });
    harness = startResolver(insecure, { endpointsOf, ...overrides });
  }
  const resolve = (name = 'app:v1', access = ANYONE) =>
    harness.resolver.resolve(`${source.host}/${name}`, access, never);
  const failure = (name = 'app:v1', access = ANYONE) => failureOf(resolve(name, access));
  const have = (server: ScriptedServer, ...platforms: string[]) =>
    server.put('app', 'manifests', indexOf(...platforms), { tag: 'v1' });

  it("asks the first mirror, names the image's registry to it, and asks no other host", async () => {
    have(first, 'linux/amd64');
    start();
    expect(await resolve()).to.deep.include({ source: first.host });
    expect(first.asked).to.deep.equal([`GET /v2/app/manifests/v1?ns=${encodeURIComponent(source.host)}`]);
    expect([...second.asked, ...source.asked]).to.deep.equal([]);
  });

  it('sends an ETag only to the endpoint that it is from', async () => {
    const serve = (server: ScriptedServer, platform: string) =>
      server.on('/v2/app/manifests/v1', (request, response) => {
        if (request.method === 'HEAD') reply(405)(request, response);
        else if (request.headers['if-none-match'] === '"1"') reply(304)(request, response);
        else reply(200, { etag: '"1"' }, JSON.stringify(indexOf(platform)))(request, response);
      });
    serve(first, 'linux/amd64');
    serve(source, 'linux/arm64');
    start({ endpoints: [first.host] });
    await resolve();
    first.on('/v2/app/manifests/v1', reply(404));
    harness.advance(600_000);
    const platforms = [{ os: 'linux', architecture: 'arm64' }];
    expect(await resolve()).to.deep.include({ source: source.host, platforms });
  });

  const passes: [what: string, set: (server: ScriptedServer) => void | Promise<void>][] = [
    ['does not have it', () => undefined],
    ['refuses', (server) => server.on('*', reply(403))],
    ['wants a login', (server) => server.on('*', reply(401, { 'www-authenticate': 'Basic realm="mirror"' }))],
    ['has reached its limit', (server) => server.on('*', reply(429, { 'retry-after': '60' }))],
    ['is broken', (server) => server.on('*', reply(503))],
    ['is down', (server) => server.stop()],
    ['never answers', (server) => server.on('*', () => undefined)],
    ['answers nonsense', (server) => server.on('*', reply(200, { 'content-type': INDEX }, '[1'))],
    ['redirects to where it may not', (server) => server.on('*', reply(307, { location: 'http://169.254.169.254/' }))],
  ];
  for (const [what, set] of passes) {
    it(`goes on to the next if a mirror ${what}, and to the source after the last`, async () => {
      await set(first);
      await set(second);
      have(source, 'linux/arm64');
      start({}, { timeoutMs: what === 'never answers' ? 400 : 5000 });
      const { platforms, source: answered } = await resolve();
      expect(platforms).to.deep.equal([{ os: 'linux', architecture: 'arm64' }]);
      expect(answered).to.equal(source.host);
      expect(source.asked).to.deep.equal(['GET /v2/app/manifests/v1']);
    });
  }

  it("reports the source's failure, and those of the mirrors", async () => {
    first.on('*', reply(503));
    start();
    const error = await failure();
    expect(error).to.include({ code: 'not-found', temporary: false, endpoint: source.host });
    expect(error.message).to.contain(
      `asked before ${source.host}: ${first.host} unavailable, ${second.host} not-found`,
    );
  });

  it('never asks a source that may not be asked, and does not believe a mirror that an image does not exist', async () => {
    have(source, 'linux/amd64');
    start({ fallback: false });
    const error = await failure();
    expect(error).to.include({ code: 'not-found', temporary: true });
    expect(error.message).to.contain(`asked instead of ${source.host}: ${first.host} not-found`);
    expect(source.asked).to.deep.equal([]);
  });

  it('reports the mirror that fails for the moment, and not that another one lacks the image, if they alone are asked', async () => {
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const) {
      one.on('*', reply(500));
      other.on('*', reply(404));
      start({ fallback: false });
      const error = await failure();
      expect(error).to.include({ code: 'unavailable', temporary: true, endpoint: one.host });
      expect(error.message).to.contain(`${other.host} not-found`);
    }
  });

  it('puts a path before the repository', async () => {
    first.put('hub/app', 'manifests', indexOf('linux/amd64'), { tag: 'v1' });
    start({ endpoints: [`${first.host}/hub`] });
    expect(await resolve()).to.deep.include({ source: `${first.host}/hub` });
  });

  it('skips a mirror that has failed, until it is due', async () => {
    first.on('*', reply(503));
    source.on('*', reply(200, { 'content-type': INDEX }, JSON.stringify(indexOf('linux/amd64'))));
    start({ endpoints: [first.host] });
    for (let index = 0; index < 10; index += 1) await resolve(`app:v${index}`);
    expect(first.asked).to.have.length(1);
    harness.advance(1000);
    await resolve('app:again');
    await resolve('app:and-again');
    expect(first.asked).to.have.length(2);
  });

  describe('with credentials', () => {
    const login = (username: string, pattern: string) => ({ pattern, username, password: 'secret' });
    const wants = (user: string): Answer => {
      const right = `Basic ${Buffer.from(`${user}:secret`).toString('base64')}`;
      const found = reply(200, { 'content-type': INDEX }, JSON.stringify(indexOf('linux/amd64')));
      return byLogin({ [right]: found }, reply(401, { 'www-authenticate': 'Basic realm="x"' }));
    };
    const users = (server: ScriptedServer) =>
      server.headers.map(({ authorization = '' }) =>
        authorization === '' ? 'nobody' : Buffer.from(authorization.slice(6), 'base64').toString().split(':')[0],
      );

    it("sends a mirror its own credentials, and never the source's", async () => {
      first.on('*', wants('mirror'));
      const operator = async () => [login('mirror', first.host), login('source', source.host)];
      start({}, { operator });
      expect(await resolve()).to.deep.include({ source: first.host });
      second.on('*', wants('source'));
      first.on('*', reply(403));
      await failure('app:v2');
      expect(users(second)).to.deep.equal(['nobody']);
    });

    it("sends a mirror the source's credentials if that is configured", async () => {
      first.on('*', wants('source'));
      start({ credentials: 'source' }, { operator: async () => [login('source', source.host)] });
      expect(await resolve()).to.deep.include({ source: first.host });
    });

    it('tries each that matches until one works, and begins with that one from then on', async () => {
      source.on('*', wants('third'));
      const operator = async () => ['first', 'second', 'third'].map((user) => login(user, source.host));
      start({ endpoints: [source.host] }, { operator });
      await resolve();
      expect(users(source)).to.deep.equal(['nobody', 'first', 'nobody', 'second', 'nobody', 'third']);
      source.headers.splice(0);
      await resolve('app:v2');
      expect(users(source)).to.deep.equal(['third']);
    });

    it('tries it at once when credentials have changed, and calls the listeners', async () => {
      source.on('*', wants('right'));
      let user = 'wrong';
      start({ endpoints: [source.host] }, { operator: async () => [login(user, source.host)] });
      await failure();
      user = 'right';
      const told = harness.settled();
      harness.resolver.forgive();
      expect(await told).to.equal(`${source.host}/app:v1`);
      const settled = harness.settled();
      harness.resolver.look(`${source.host}/app:v1`, ANYONE);
      await settled;
      expect(harness.known(`${source.host}/app:v1`, ANYONE)?.platforms).to.have.length(1);
    });

    it('makes no anonymous request for a private image', async () => {
      have(source, 'linux/amd64');
      start({ endpoints: [source.host] }, { isPrivate: (name) => name === `${source.host}/app` });
      const error = await failure();
      expect(error).to.include({ code: 'denied' });
      expect(error.message).to.contain(`registries.private allows no anonymous request for ${source.host}/app`);
      expect(source.asked).to.deep.equal([]);
      expect(await resolve('other:v1').catch((reason: unknown) => reason)).to.include({ code: 'not-found' });
      expect(source.asked).to.have.length(1);
    });

    for (const [what, root] of [
      ['by the challenge at the root', reply(401, { 'www-authenticate': 'Basic realm="x"' })],
      ['even if the root requires none', reply(200)],
    ] as const) {
      it(`requests a private image with a credential from the first request on, ${what}`, async () => {
        have(source, 'linux/amd64');
        const own = { isPrivate: () => true, operator: async () => [login('ops', source.host)] };
        start({ endpoints: [source.host] }, own);
        source.on('/v2/', root);
        await resolve();
        expect(source.asked).to.deep.equal(['GET /v2/', 'GET /v2/app/manifests/v1']);
        expect(users(source)).to.deep.equal(['nobody', 'ops']);
      });
    }

    it("gives everybody the answers of the operator's credential, but those of a pod's only to holders of the same one", async () => {
      source.on('*', wants('pod'));
      const pod: Access = { ...ANYONE, pullSecrets: ['own'] };
      const pullSecrets = async () => [pullSecret('own', { [source.host]: 'pod:secret' })];
      let operators: ReturnType<typeof login>[] = [];
      start({ endpoints: [source.host] }, { pullSecrets, operator: async () => operators });
      await resolve('app:v1', pod);
      expect(harness.known(`${source.host}/app:v1`, ANYONE)).to.equal(undefined);
      operators = [login('pod', source.host)];
      await resolve('app:v2', pod);
      expect(harness.known(`${source.host}/app:v2`, ANYONE)?.platforms).to.have.length(1);
    });
  });

  it('is due again when the pause is over, however often it was asked too early', async () => {
    source.on('*', reply(429, { 'retry-after': '60' }));
    start({ endpoints: [source.host] });
    for (let index = 0; index < 8; index += 1) await failure();
    const { retryInMs } = harness.failure(`${source.host}/app:v1`, ANYONE) ?? expect.fail();
    expect(retryInMs).to.be.within(60_000, 62_000);
  });

  for (const status of [429, 503])
    it(`says of an image that waits at a limit (${status}) for how long, and that it has begun to wait`, async () => {
      have(source, 'linux/amd64');
      start({ endpoints: [source.host] }, { patienceMs: 30_000 });
      await resolve();
      // The clock of the tests stands still, so the pause does not end.
      source.on('*', reply(status));
      const settled = harness.settled();
      const look = () => harness.resolver.look(`${source.host}/app:v2`, ANYONE);
      look();
      await settled;
      expect(look()).to.have.nested.property('line.registry', source.host);
    });

  it('asks slowly for the last tenth of a limit, before the registry refuses anything', async () => {
    const headers = { 'content-type': INDEX, 'RateLimit-Limit': '100;w=21600', 'RateLimit-Remaining': '9;w=21600' };
    source.on('*', reply(200, headers, JSON.stringify(indexOf('linux/amd64'))));
    start({ endpoints: [] }, { patienceMs: 0 });
    await resolve();
    expect(await failure('app:v2')).to.include({ code: 'rate-limited', isUnasked: true });
    harness.advance(5000);
    await resolve('app:v2');
    expect(source.asked).to.have.length(2);
  });

  for (const [what, code, blobReply] of [
    ['is refused for the moment', 'rate-limited', reply(429, { 'retry-after': '5' })],
    ['is not there for the moment', 'unavailable', reply(503)],
    ['is not answered', 'unavailable', (request: IncomingMessage) => request.socket.destroy()],
  ] as const) {
    it(`requests a manifest once, even if its config blob ${what}`, async () => {
      putImage(source, 'one', 'arm64', 'v1');
      const blob = `/v2/one/blobs/${sha256(JSON.stringify({ architecture: 'arm64', os: 'linux' }))}`;
      source.on(blob, blobReply);
      start({ endpoints: [source.host] });
      expect(await failure('one:v1')).to.include({ code });
      putImage(source, 'one', 'arm64');
      harness.advance(5000);
      expect((await resolve('one:v1')).platforms).to.deep.equal([{ os: 'linux', architecture: 'arm64' }]);
      expect(source.asked.map((line) => line.replace(/sha256:.*/, 'digest'))).to.deep.equal([
        'GET /v2/one/manifests/v1',
        'GET /v2/one/blobs/digest',
        'GET /v2/one/blobs/digest',
      ]);
    });
  }

  it('goes on to the next if a mirror lacks a part of an index', async () => {
    const put = (server: ScriptedServer, ...held: string[]) => {
      const manifests = ['amd64', 'arm64'].map((architecture) => {
        const at = held.includes(architecture) ? server : second;
        const digest = at.put('app', 'manifests', indexOf(`linux/${architecture}`));
        return { mediaType: INDEX, digest, size: 1, platform: { os: 'linux', architecture } };
      });
      server.put('app', 'manifests', { schemaVersion: 2, mediaType: INDEX, manifests }, { tag: 'v1' });
    };
    put(first, 'arm64');
    put(source, 'amd64', 'arm64');
    start({ endpoints: [first.host] });
    expect((await resolve()).platforms.map(({ architecture }) => architecture)).to.deep.equal(['amd64', 'arm64']);
  });

  it('requests the manifest again if its config blob was missing and the tag may have been pushed again', async () => {
    putImage(source, 'one', 'arm64', 'v1');
    source.on(`/v2/one/blobs/${sha256(JSON.stringify({ architecture: 'arm64', os: 'linux' }))}`, reply(500));
    start({ endpoints: [source.host] });
    expect(await failure('one:v1')).to.include({ code: 'unavailable' });
    putImage(source, 'one', 'amd64', 'v1');
    harness.advance(1000);
    expect((await resolve('one:v1')).platforms).to.deep.equal([{ os: 'linux', architecture: 'amd64' }]);
  });

  it('counts places by the host that is asked, not by the first host of the image', async () => {
    for (const server of [first, second]) server.on('*', reply(404));
    source.on('*', () => undefined);
    start({ endpoints: [first.host] }, { maxInFlight: 3 });
    for (let index = 0; index < 12; index += 1) harness.resolver.look(`${source.host}/app:v${index}`, ANYONE);
    // Two of one project, because the source has not answered yet.
    await until(() => source.asked.length === 2 && first.asked.length === 12);
    first.put('ready', 'manifests', indexOf('linux/amd64'), { tag: 'v1' });
    expect((await resolve('ready:v1')).source).to.equal(first.host);
    expect(source.asked).to.have.length(2);
  });

  it('says of a lookup that found no place in time that nothing was asked', async () => {
    source.on('*', () => undefined);
    start({ endpoints: [] }, { maxInFlight: 1, timeoutMs: 100 });
    const names = Array.from({ length: 8 }, (_, index) => `app/${index}:v1`);
    const errors = await Promise.all(names.map((name) => failure(name)));
    const unasked = errors.filter(({ isUnasked }) => isUnasked);
    expect(unasked.some(({ message }) => message.includes('had no free request slot for its project app'))).to.equal(
      true,
    );
    expect(unasked.length + harness.requests.length).to.equal(8);
  });

  it('fails a lookup whose pull secrets cannot be read in time', async () => {
    const pullSecrets = () => new Promise<never>(() => undefined);
    start({ endpoints: [source.host] }, { pullSecrets, timeoutMs: 100 });
    expect(await failure('app:v1', { ...ANYONE, pullSecrets: ['slow'] })).to.include({ code: 'unavailable' });
  });

  it('is due again at once if credentials changed while it ran', async () => {
    let answer: (() => void) | undefined;
    source.on('*', (request, response) => {
      answer = () => reply(403)(request, response);
    });
    start({ endpoints: [source.host] });
    const failed = failure('app:v1');
    await until(() => answer !== undefined);
    harness.resolver.forgive();
    answer?.();
    await failed;
    expect(harness.failure(`${source.host}/app:v1`, ANYONE)?.retryInMs).to.equal(Number.POSITIVE_INFINITY);
  });
});
