import { expect } from 'chai';
import type { Access } from '../../src/oci/credentials/keyring.ts';
import {
  ANYONE,
  byLogin,
  CONFIG,
  failureOf,
  type Harness,
  IMAGE,
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
} from './server.ts';

function platformNames(platforms: readonly { os: string; architecture: string }[] | undefined): string[] | undefined {
  return platforms?.map(({ os, architecture }) => `${os}/${architecture}`);
}

describe('the resolver', () => {
  let server: ScriptedServer;
  let harness: Harness;
  beforeEach(async () => {
    server = await startServer();
    harness = startResolver([server.host]);
  });
  stopAfterEach();

  const image = (rest: string): string => `${server.host}/${rest}`;
  const putIndex = (...platforms: string[]) => server.put('app', 'manifests', indexOf(...platforms), { tag: 'v1' });
  const known = (rest: string, access = ANYONE) => harness.known(image(rest), access);
  const resolve = (rest: string, access = ANYONE): ReturnType<Harness['resolver']['resolve']> =>
    harness.resolver.resolve(image(rest), access, never);
  const failure = (rest: string, access = ANYONE) => failureOf(resolve(rest, access));
  /** The requests since the last call. */
  const asked = (): string[] => server.asked.splice(0);

  describe('sends as few requests as possible', () => {
    it('for an index one GET, and then nothing', async () => {
      const digest = putIndex('linux/amd64', 'linux/arm64/v8');
      const { resolver } = harness;
      expect(known('app:v1')).to.equal(undefined);
      const settled = harness.settled();
      resolver.look(image('app:v1'), ANYONE);
      expect(resolver.pending()).to.equal(1);
      expect(await settled).to.equal(image('app:v1'));
      expect(resolver.pending()).to.equal(0);
      expect(platformNames(known('app:v1')?.platforms)).to.deep.equal(['linux/amd64', 'linux/arm64']);
      resolver.look(image('app:v1'), ANYONE);
      expect(await resolve('app:v1')).to.include({ digest, source: server.host });
      expect(asked()).to.deep.equal(['GET /v2/app/manifests/v1']);
      expect(harness.results).to.deep.equal(['ok']);
      expect(harness.cached).to.deep.equal(['miss', 'hit', 'hit']);
    });

    it('for a single manifest one GET and its config blob', async () => {
      putImage(server, 'team/app', 'aarch64', 'latest');
      expect(platformNames((await resolve('team/app')).platforms)).to.deep.equal(['linux/arm64']);
      expect(asked().map((line) => line.replace(/sha256:.*/, 'digest'))).to.deep.equal([
        'GET /v2/team/app/manifests/latest',
        'GET /v2/team/app/blobs/digest',
      ]);
    });

    it('for many at once a single GET', async () => {
      putIndex('linux/amd64');
      const controller = new AbortController();
      const gone = harness.resolver
        .resolve(image('app:v1'), ANYONE, controller.signal)
        .catch((error: unknown) => error);
      const others = Array.from({ length: 50 }, () => resolve('app:v1'));
      for (let index = 0; index < 50; index += 1) harness.resolver.look(image('app:v1'), ANYONE);
      controller.abort(new Error('gone'));
      expect(String(await gone)).to.equal('Error: gone');
      await Promise.all(others);
      expect(asked()).to.have.length(1);
    });

    it('for a tag that is old a HEAD with the same Accept', async () => {
      putIndex('linux/amd64');
      await resolve('app:v1');
      harness.advance(600_000);
      expect(known('app:v1')).to.equal(undefined);
      await resolve('app:v1');
      expect(asked()).to.deep.equal(['GET /v2/app/manifests/v1', 'HEAD /v2/app/manifests/v1']);
      expect(server.headers[1]?.accept).to.equal(server.headers[0]?.accept);
      expect(server.headers[0]?.accept).to.include(INDEX).and.include('*/*');
      expect(platformNames(known('app:v1')?.platforms)).to.deep.equal(['linux/amd64']);
      expect(harness.cached).to.deep.equal(['miss', 'revalidated', 'hit']);
    });

    it('for a tag that moved a GET by digest, or nothing if that digest is known', async () => {
      const first = putIndex('linux/amd64');
      await resolve('app:v1');
      const second = putIndex('linux/arm64');
      harness.advance(600_000);
      asked();
      expect(platformNames((await resolve('app:v1')).platforms)).to.deep.equal(['linux/arm64']);
      expect(asked()).to.deep.equal(['HEAD /v2/app/manifests/v1', `GET /v2/app/manifests/${second}`]);
      putIndex('linux/amd64');
      harness.advance(600_000);
      expect(await resolve('app:v1')).to.include({ digest: first });
      expect(asked()).to.deep.equal(['HEAD /v2/app/manifests/v1']);
    });

    it('for a digest one GET, once for all names that have it', async () => {
      const digest = server.put('app', 'manifests', indexOf('linux/amd64'));
      await resolve(`app:v9@${digest}`);
      harness.advance(1e9);
      expect(platformNames(known(`app@${digest}`, ANYONE)?.platforms)).to.deep.equal(['linux/amd64']);
      expect(asked()).to.deep.equal([`GET /v2/app/manifests/${digest}`]);
    });

    it('again sooner if the pull policy is Always', async () => {
      putIndex('linux/amd64');
      await resolve('app:v1');
      harness.advance(10_000);
      expect(known('app:v1')?.platforms).to.have.length(1);
      expect(known('app:v1', { ...ANYONE, always: true })).to.equal(undefined);
    });

    it('with HEAD as before if another project answers HEAD without a digest', async () => {
      const put = (repository: string, ...platforms: string[]) =>
        server.put(repository, 'manifests', indexOf(...platforms), { tag: 'v1' });
      const withoutDigest = reply(200, { 'content-type': INDEX }, JSON.stringify(indexOf('linux/amd64')));
      for (const name of ['one', 'two', 'three']) server.on(`/v2/odd/${name}/manifests/v1`, withoutDigest);
      for (const repository of ['good/app', 'odd/good']) put(repository, 'linux/amd64');
      const all = ['odd/one', 'odd/two', 'odd/three', 'good/app', 'odd/good'].map((repository) => `${repository}:v1`);
      for (const name of all) await resolve(name);
      harness.advance(600_000);
      for (const name of all.slice(0, 2)) await resolve(name);
      asked();
      // The project as a whole once two of its repositories did so, and no other one.
      for (const name of all.slice(2)) await resolve(name);
      const requests = ['GET /v2/odd/three', 'HEAD /v2/good/app', 'GET /v2/odd/good'];
      expect(asked().map((line) => line.replace('/manifests/v1', ''))).to.deep.equal(requests);
    });

    for (const [what, answer] of [
      ['names no digest', reply(200)],
      ['names a bad digest', reply(200, { 'docker-content-digest': 'sha256:x' })],
      ['is not allowed', reply(405)],
      ['is not implemented', reply(501)],
      ['is forbidden', reply(403)],
    ] as const) {
      it(`with If-None-Match if HEAD ${what}, and less often without an ETag`, async () => {
        let etag: Record<string, string> = { etag: '"tag"' };
        let body = JSON.stringify(indexOf('linux/amd64'));
        server.on('/v2/app/manifests/v1', (request, response) => {
          if (request.method === 'HEAD') answer(request, response);
          else if (request.headers['if-none-match'] === '"tag"' && etag.etag) reply(304)(request, response);
          else reply(200, { ...etag, 'content-type': INDEX }, body)(request, response);
        });
        const methods = (): string[] => asked().map((line) => line.split(' ')[0] ?? '');
        await resolve('app:v1');
        harness.advance(600_000);
        await resolve('app:v1');
        expect(methods()).to.deep.equal(['GET', 'HEAD', 'GET']);
        expect(server.headers.at(-1)?.['if-none-match']).to.equal('"tag"');
        harness.advance(600_000 - 1);
        await resolve('app:v1');
        expect(methods()).to.deep.equal([]);
        etag = {};
        body = JSON.stringify(indexOf('linux/arm64'));
        harness.advance(1);
        expect(platformNames((await resolve('app:v1')).platforms)).to.deep.equal(['linux/arm64']);
        expect(methods()).to.deep.equal(['GET']);
        harness.advance(6 * 600_000 - 1);
        await resolve('app:v1');
        expect(methods()).to.deep.equal([]);
        harness.advance(1);
        await resolve('app:v1');
        expect(methods()).to.deep.equal(['GET']);
      });
    }
  });

  describe('understands', () => {
    it('an index without what does not count in it, unless somebody shows that', async () => {
      putIndex('linux/amd64', 'unknown/unknown');
      const controller = startResolver([server.host], { namesSkipped: false });
      const found = await controller.resolver.resolve(image('app:v1'), ANYONE, never);
      expect(found.skipped).to.deep.equal([]);
      expect((await resolve('app:v1')).skipped).to.have.length(1);
    });

    function nest(depth: number): void {
      let digest = server.put('app', 'manifests', indexOf('linux/amd64'), { tag: `d1` });
      for (let level = 2; level <= depth; level += 1) {
        const manifests = [{ mediaType: INDEX, digest, size: 1 }];
        digest = server.put('app', 'manifests', { schemaVersion: 2, manifests }, { tag: `d${level}` });
      }
    }
    it('indexes to a depth of three, and no deeper', async () => {
      nest(4);
      expect(await failure('app:d4')).to.include({ code: 'too-large' });
      const platforms = [{ os: 'linux', architecture: 'amd64' }];
      expect(await resolve('app:d3')).to.deep.include({ platforms, only: 'containerd' });
    });

    it('at most 32 indexes within an index', async () => {
      const manifests = Array.from({ length: 33 }, (_, index) => ({
        mediaType: INDEX,
        digest: sha256(String(index)),
        platform: { os: `os${index}`, architecture: 'amd64' },
      }));
      server.put('app', 'manifests', { schemaVersion: 2, manifests }, { tag: 'v1' });
      expect(await failure('app:v1')).to.include({ code: 'too-large', temporary: false });
      expect(asked().length).to.be.below(40);
    });
  });

  describe('refuses', () => {
    it('a config blob that does not match its digest', async () => {
      const manifest = { config: { mediaType: CONFIG, digest: sha256('x') }, layers: [] };
      server.put('app', 'manifests', manifest, { tag: 'v1', type: IMAGE });
      server.on(`/v2/app/blobs/${sha256('x')}`, reply(200, {}, '{"architecture":"amd64"}'));
      expect(await failure('app:v1')).to.include({ code: 'malformed' });
    });

    it('an index without an image, with the reason', async () => {
      putIndex('unknown/unknown');
      expect(await failure('app:v1'))
        .to.include({ code: 'unsupported', temporary: false })
        .and.property('message')
        .match(/1 left out, the first is the platform "unknown\/unknown"/);
    });

    it('malformed names, without a request', async () => {
      const settled = harness.settled();
      harness.resolver.look('Nope', ANYONE);
      expect(await settled).to.equal('Nope');
      expect(harness.failure('Nope', ANYONE)?.error).to.include({ code: 'malformed' });
      expect(harness.known('Nope', ANYONE)).to.equal(undefined);
    });
  });

  describe('remembers failures', () => {
    it('and spaces its retries, from the first on', async () => {
      server.on('*', reply(503));
      const waits: number[] = [];
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        const settled = harness.settled();
        harness.resolver.look(image('app'), ANYONE);
        await settled;
        const failed = harness.failure(image('app'), ANYONE) ?? expect.fail();
        expect(failed.error).to.include({ code: 'unavailable' });
        expect(failed.sinceMs).to.equal(waits.reduce((one, other) => one + other, 0));
        expect(harness.resolver.failing()).to.equal(1);
        harness.resolver.look(image('app'), ANYONE);
        expect(harness.resolver.pending()).to.equal(0);
        waits.push(failed.retryInMs);
        harness.advance(failed.retryInMs);
      }
      expect(waits).to.deep.equal([1500, 2500, 4500]);
      expect(asked()).to.have.length(3);
      server.put('app', 'manifests', indexOf('linux/amd64'), { tag: 'latest' });
      await resolve('app');
      expect(harness.failure(image('app'), ANYONE)).to.equal(undefined);
      expect(harness.resolver.failing()).to.equal(0);
    });

    it('and plans a retry that becomes due during a call', async () => {
      server.on('*', reply(503));
      let [time, later] = [1_000_000, 0];
      const now = () => {
        const at = time;
        time += later;
        return at;
      };
      const moving = startResolver([server.host], { now });
      await moving.resolver.resolve(image('app'), ANYONE, never).catch(() => undefined);
      time += 1_499;
      later = 1;
      expect(moving.resolver.look(image('app'), ANYONE)).to.include({ kind: 'failed', retryInMs: 1 });
      expect(moving.resolver.pending()).to.equal(0);
      const settled = moving.settled();
      expect(moving.resolver.look(image('app'), ANYONE)).to.include({ retryInMs: Number.POSITIVE_INFINITY });
      expect(moving.resolver.pending()).to.equal(1);
      await settled;
    });

    it('for a while if they do not pass by themselves', async () => {
      const { code } = await failure('app');
      const failed = harness.failure(image('app'), ANYONE);
      expect(code).to.equal('not-found');
      expect(failed?.retryInMs).to.equal(30_000);
    });

    it('and keeps what was known of a tag until a retry succeeds', async () => {
      putIndex('linux/amd64');
      await resolve('app:v1');
      server.on('/v2/app/manifests/v1', reply(500));
      harness.advance(600_000);
      expect(await failure('app:v1')).to.include({ code: 'unavailable' });
      expect(platformNames(known('app:v1')?.platforms)).to.deep.equal(['linux/amd64']);
      expect(harness.failure(image('app:v1'), ANYONE)).to.equal(undefined);
      expect(harness.cached.at(-1)).to.equal('stale');
      expect(harness.resolver.failing()).to.equal(1);
      harness.advance(1000);
      expect(await failure('app:v1')).to.include({ code: 'unavailable' });
      expect(platformNames(known('app:v1')?.platforms)).to.deep.equal(['linux/amd64']);
      putIndex('linux/amd64');
      harness.advance(2000);
      await resolve('app:v1');
      expect(harness.resolver.failing()).to.equal(0);
    });

    it('of an old tag, and looks it up again only when that is requested', async () => {
      putIndex('linux/amd64');
      await resolve('app:v1');
      server.on('/v2/app/manifests/v1', reply(500));
      harness.advance(600_000);
      await failure('app:v1');
      harness.advance(600_000);
      asked();
      expect(known('app:v1')?.platforms).to.have.length(1);
      expect(known('app:v1')?.isStale).to.equal(true);
      harness.resolver.look(image('app:v1'), ANYONE, () => false);
      expect(harness.resolver.pending()).to.equal(0);
      let allowed = 0;
      const settled = harness.settled();
      for (let times = 0; times < 3; times += 1) {
        harness.resolver.look(image('app:v1'), ANYONE, () => {
          allowed += 1;
          return true;
        });
      }
      await settled;
      harness.resolver.look(image('app:v1'), ANYONE, () => expect.fail('it is not due'));
      expect(allowed).to.equal(1);
      expect(asked()).to.have.length(1);
    });

    it('and says nothing of an image that nobody asked for lately before its retry has ended', async () => {
      for (const [what, idleMs] of [
        ['unknown', 90_000],
        ['stale', 300_000],
      ] as const) {
        const look = (mayStart?: () => boolean) => harness.resolver.look(image(`${what}:v1`), ANYONE, mayStart);
        const path = `/v2/${what}/manifests/v1`;
        if (what === 'stale') {
          server.put(what, 'manifests', indexOf('linux/amd64'), { tag: 'v1' });
          await resolve('stale:v1');
          harness.advance(600_000);
        }
        server.on(path, reply(404));
        await failure(`${what}:v1`);
        const before = what === 'stale' ? 'known' : 'failed';
        expect(look().kind, what).to.equal(before);
        harness.advance(30_000 + idleMs);
        expect(look(() => false).kind, what).to.equal(before);
        const again = harness.settled();
        expect(look(), what).to.deep.equal({ kind: 'pending', isPlanned: true });
        expect(look().kind, what).to.equal('pending');
        await again;
        expect(look(), what).to.include(what === 'stale' ? { isStale: true } : { sinceMs: 30_000 + idleMs });
        harness.advance(600_000);
        server.put(what, 'manifests', indexOf('linux/arm64'), { tag: 'v1' });
        const found = harness.settled();
        expect(look().kind, what).to.equal('pending');
        await found;
        expect(platformNames(known(`${what}:v1`)?.platforms), what).to.deep.equal(['linux/arm64']);
      }
    });

    it('and says nothing of an image before its retry has ended if credentials have changed since', async () => {
      const look = (mayStart?: () => boolean) => harness.resolver.look(image('app:v1'), ANYONE, mayStart);
      server.on('*', reply(401));
      await failure('app:v1');
      harness.advance(20_000);
      harness.resolver.forgive();
      expect(look(() => false)).to.include({ kind: 'failed', sinceMs: 20_000 });
      for (const answer of [reply(401), undefined]) {
        if (answer === undefined) putIndex('linux/arm64');
        const settled = harness.settled();
        expect(look().kind).to.equal('pending');
        expect(look().kind).to.equal('pending');
        await settled;
        const isDenied = answer !== undefined;
        expect(look()).to.include(isDenied ? { kind: 'failed', sinceMs: 20_000 } : { kind: 'known' });
        harness.resolver.forgive();
      }
    });

    it('of a deleted tag, and continues to use HEAD', async () => {
      putIndex('linux/amd64');
      await resolve('app:v1');
      server.on('/v2/app/manifests/v1', reply(404));
      harness.advance(600_000);
      expect(await failure('app:v1')).to.include({ code: 'not-found' });
      putIndex('linux/amd64');
      asked();
      await resolve('app:v1');
      expect(asked()).to.deep.equal(['HEAD /v2/app/manifests/v1']);
    });
  });

  describe('with pull secrets', () => {
    const logins = (): string[] =>
      server.headers
        .splice(0)
        .flatMap(({ authorization }) =>
          authorization === undefined ? '-' : Buffer.from(authorization.replace('Basic ', ''), 'base64').toString(),
        );
    const reads: string[] = [];

    beforeEach(() => {
      reads.length = 0;
      const secrets: Readonly<Record<string, Readonly<Record<string, string>>>> = {
        good: { [server.host]: 'me:right' },
        copy: { [server.host]: 'me:right' },
        bad: { [server.host]: 'me:wrong' },
        specific: { [`${server.host}/private`]: 'me:specific' },
        foreign: { 'elsewhere.example.com': 'me:right' },
      };
      harness = startResolver([server.host], {
        pullSecrets: async ({ namespace, pullSecrets }) => {
          reads.push(namespace);
          if (pullSecrets.includes('down')) throw new Error('hunter2');
          return pullSecrets.map((name) => {
            const logins = secrets[name];
            if (logins !== undefined) return pullSecret(name, logins);
            return name === 'opaque' ? { name, type: 'Opaque', data: {} } : { name, problem: 'not found' };
          });
        },
      });
      const body = JSON.stringify(indexOf('linux/arm64'));
      const right = `Basic ${Buffer.from('me:right').toString('base64')}`;
      const found = reply(200, { 'content-type': INDEX, 'docker-content-digest': sha256(body) }, body);
      const other = reply(401, { 'www-authenticate': 'Basic realm="x"' });
      server.on('/v2/private/app/manifests/latest', byLogin({ [right]: found }, other));
      server.put('public', 'manifests', indexOf('linux/amd64'), { tag: 'latest' });
    });
    const access = (namespace: string, ...pullSecrets: string[]): Access => ({ namespace, pullSecrets, always: false });

    it('gives what one found out only to holders of the same credential', async () => {
      const name = image('private/app');
      const { digest } = await resolve('private/app', access('a', 'good'));
      expect(platformNames(harness.known(name, access('a', 'good'))?.platforms)).to.deep.equal(['linux/arm64']);
      for (const other of [ANYONE, access('b'), access('b', 'bad'), access('a', 'bad'), access('a', 'foreign')]) {
        expect(harness.known(name, other)).to.equal(undefined);
      }
      asked();
      expect(harness.known(name, access('b', 'copy'))).to.equal(undefined);
      await resolve('private/app', access('b', 'copy'));
      expect(asked()).to.deep.equal([]);
      expect(harness.known(name, access('b', 'copy'))?.platforms).to.have.length(1);
      expect(known(`private/app@${digest}`, ANYONE)?.platforms).to.have.length(1);
      expect(await failure('private/app')).to.include({ code: 'denied' });
      expect(await failure('private/app', access('c', 'bad'))).to.include({ code: 'denied' });
    });

    it('gives everybody what was found out anonymously, without reading a secret', async () => {
      await resolve('public');
      expect(known('public', access('a', 'good'))?.platforms).to.have.length(1);
      await resolve('public', access('z', 'bad'));
      expect(reads).to.deep.equal([]);
    });

    it('tries them as the kubelet does, but none of another host, and no login last', async () => {
      await failure('private/app', access('a', 'bad', 'foreign', 'specific'));
      expect(logins()).to.deep.equal(['-', 'me:specific', '-', 'me:wrong', '-']);
      await resolve('private/app', access('a', 'bad', 'good'));
      // A credential that was just refused is not tried again.
      expect(logins()).to.deep.equal(['-', 'me:right']);
    });

    it('names those that cannot be used, and goes on without them', async () => {
      await resolve('private/app', access('a', 'gone', 'opaque', 'good'));
      expect(harness.unusable).to.deep.equal([
        'a/gone: not found',
        'a/opaque: its type is neither kubernetes.io/dockerconfigjson nor kubernetes.io/dockercfg',
      ]);
    });

    it('that cannot be read fails for the moment', async () => {
      const error = await failure('public', access('a', 'down'));
      expect(error).to.include({ code: 'unavailable', temporary: true });
      expect(error.message).to.not.include('hunter2');
    });

    it('makes one lookup for pods of many namespaces with the same credential', async () => {
      const asking = ['a', 'b', 'c', 'd'].map((namespace) => resolve('private/app', access(namespace, 'good')));
      await Promise.all(asking);
      expect(asked()).to.have.length(2);
    });
  });

  it('ends with its signal: no lookup is pending or failed, and no more requests are sent', async () => {
    server.on('*', () => undefined);
    const waiting = resolve('app').catch((error: unknown) => error);
    harness.resolver.look(image('other'), ANYONE);
    harness.stop();
    expect(String(await waiting)).to.equal('Error: stopped');
    await new Promise((done) => setImmediate(done));
    expect(harness.resolver.pending()).to.equal(0);
    expect(harness.results).to.deep.equal([]);
    harness.resolver.look(image('third'), ANYONE);
    expect(harness.resolver.pending()).to.equal(0);
  });

  describe('whether an image is an index', () => {
    const platforms = [{ os: 'linux', architecture: 'arm64' }];

    const bundle = { 'operators.operatorframework.io.bundle.manifests.v1': 'manifests/' };
    const images: readonly [what: string, put: () => string, expected: object][] = [
      ['an index, even one with a single entry', () => putIndex('linux/arm64'), { isIndex: true }],
      ['a single manifest', () => putImage(server, 'app', 'arm64', 'v1'), { isIndex: false }],
      ['a bundle', () => putImage(server, 'app', 'arm64', 'v1', bundle), { isIndex: false, isBundle: true }],
    ];
    for (const [what, put, expected] of images) {
      it(`is known of ${what}`, async () => {
        put();
        expect(await resolve('app:v1')).to.deep.include({ platforms, ...expected });
        expect(known('app:v1')).to.deep.equal({ platforms, ...expected });
      });
    }

    const config = (body: unknown) => {
      const digest = server.put('data', 'blobs', body, { type: 'application/octet-stream' });
      return { mediaType: CONFIG, digest, size: 1 };
    };
    const empty = { mediaType: 'application/vnd.oci.empty.v1+json', digest: `sha256:${'a'.repeat(64)}`, size: 2 };
    const singles: readonly [what: string, manifest: () => object, expected: boolean][] = [
      ['an artifact', () => ({ artifactType: 'application/model', config: empty }), true],
      ['an image that names no platform', () => ({ config: config({}) }), true],
      ['an image for an unknown platform', () => ({ config: config({ os: 'unknown', architecture: 'x' }) }), true],
      ['an empty index', () => ({ manifests: [], layers: undefined }), false],
      [
        'an index whose entry names no platform',
        () => {
          const child = { schemaVersion: 2, mediaType: IMAGE, config: config({}), layers: [] };
          const digest = server.put('data', 'manifests', child, { type: IMAGE });
          return { manifests: [{ mediaType: IMAGE, digest, size: 1 }], layers: undefined };
        },
        false,
      ],
    ];
    for (const [what, manifest, expected] of singles) {
      it(`is known of ${what}, which has no platforms`, async () => {
        const body = { schemaVersion: 2, layers: [], ...manifest() };
        server.put('data', 'manifests', body, { tag: 'v1', type: 'x/y' });
        expect((await failure('data:v1')).isSingleManifest).to.equal(expected);
        expect(harness.failure(image('data:v1'), ANYONE)?.error.isSingleManifest).to.equal(expected);
      });
    }
  });
});
