import { expect } from 'chai';
import { createImageCache, type ImageCache } from '../../src/oci/cache.ts';
import { createRoutes, type RouteOptions } from '../../src/oci/endpoints/mirrors.ts';
import type { Resolution } from '../../src/oci/resolver.ts';
import {
  ANYONE,
  type Answer,
  failureOf,
  type Harness,
  IMAGE,
  INDEX,
  indexOf,
  never,
  putImage,
  reply,
  type ScriptedServer,
  startResolver,
  startServer,
  stopAfterEach,
} from './server.ts';

/** Milliseconds: longer than a tag is valid. */
const LATER = 700_000;
const BOTH = ['linux/amd64', 'linux/arm64'];

type Entry = { readonly mediaType: string; readonly digest: string; readonly size: 1; readonly platform?: object };

describe('a registry that may lack platforms of an index', () => {
  let mirror: ScriptedServer;
  let source: ScriptedServer;
  let harness: Harness;
  beforeEach(async () => {
    [mirror, source] = await Promise.all([startServer(), startServer()]);
  });
  stopAfterEach();

  /** Returns an index of images whose manifests are nowhere. */
  const entries = (...platforms: string[]): Entry[] => indexOf(...platforms).manifests as Entry[];
  const digestOf = (platform: string): string => entries(platform)[0]?.digest ?? expect.fail(platform);
  const putIndex = (server: ScriptedServer, manifests: readonly unknown[] = entries(...BOTH), tag = 'v1'): string =>
    server.put('app', 'manifests', { schemaVersion: 2, mediaType: INDEX, manifests }, { tag });
  const hold = (server: ScriptedServer, platform: string, answer: Answer = reply(200)): void =>
    server.on(`/v2/app/manifests/${digestOf(platform)}`, answer);
  const start = (
    { mirrors = {}, sparse = [] }: Partial<Pick<RouteOptions, 'mirrors' | 'sparse'>>,
    cache: ImageCache = createImageCache(1000),
  ): Harness => {
    const hosts = [mirror.host, source.host];
    const { endpointsOf } = createRoutes({ mirrors, sparse, insecure: hosts, hosts: () => undefined });
    harness = startResolver(hosts, { endpointsOf, cache });
    return harness;
  };
  const behind = (fallback: boolean, cache?: ImageCache): Harness =>
    start(
      {
        mirrors: { [source.host]: { endpoints: [`http://${mirror.host}`], fallback, credentials: 'mirror' } },
        sparse: [mirror.host],
      },
      cache,
    );
  /** The source has an index of both, and may lack all but these; returns its digest. */
  const startSparse = (...held: string[]): string => {
    for (const platform of held) hold(source, platform);
    start({ sparse: [source.host] });
    return putIndex(source);
  };
  const resolve = (image = `${source.host}/app:v1`): Promise<Resolution> =>
    harness.resolver.resolve(image, ANYONE, never);
  const resolved = async (image?: string): Promise<string> => said(await resolve(image));
  const said = ({ platforms }: Pick<Resolution, 'platforms'>): string =>
    platforms.map(({ os, architecture, variant }) => [os, architecture, variant].filter(Boolean).join('/')).join(' ');
  const failure = () => failureOf(resolve());
  const heads = ({ asked }: ScriptedServer): number => asked.filter((line) => line.startsWith('HEAD ')).length;

  it('is believed if nothing says that it may, without one more request', async () => {
    putIndex(source);
    start({});
    expect(await resolved()).to.equal('linux/amd64 linux/arm64');
    expect(source.asked).to.deep.equal(['GET /v2/app/manifests/v1']);
  });

  it('counts with what it has', async () => {
    startSparse('linux/amd64');
    const { platforms, skipped } = await resolve();
    expect(said({ platforms })).to.equal('linux/amd64');
    expect(skipped).to.deep.equal([{ digest: digestOf('linux/arm64'), reason: `not in ${source.host} (linux/arm64)` }]);
    expect(source.asked).to.deep.equal([
      'GET /v2/app/manifests/v1',
      `HEAD /v2/app/manifests/${digestOf('linux/amd64')}`,
      `HEAD /v2/app/manifests/${digestOf('linux/arm64')}`,
    ]);
  });

  it('is asked once for a digest of which it has all, whatever the name', async () => {
    const digest = startSparse(...BOTH);
    putIndex(source, entries(...BOTH), 'v2');
    for (const name of ['app:v1', 'app:v2', `app@${digest}`]) {
      expect(await resolved(`${source.host}/${name}`), name).to.equal('linux/amd64 linux/arm64');
    }
    expect(heads(source)).to.equal(2);
    harness.advance(LATER);
    expect(await resolved()).to.equal('linux/amd64 linux/arm64');
    expect(heads(source), 'one more for the tag').to.equal(3);
    harness.advance(LATER);
    expect(await resolved(`${source.host}/app@${digest}`)).to.equal('linux/amd64 linux/arm64');
    expect(heads(source)).to.equal(3);
  });

  for (const name of ['app:v1', 'app@DIGEST']) {
    it(`is asked again for what it lacked, by ${name}`, async () => {
      const image = `${source.host}/${name.replace('DIGEST', startSparse('linux/amd64'))}`;
      expect(await resolved(image)).to.equal('linux/amd64');
      hold(source, 'linux/arm64');
      expect(await resolved(image), 'at once').to.equal('linux/amd64');
      harness.advance(LATER);
      expect(await resolved(image), 'later').to.equal('linux/amd64 linux/arm64');
    });
  }

  const linux = { os: 'linux', architecture: 'arm64' };
  const rows: [what: string, index: () => Entry[], held: string[], expected: string][] = [
    [
      'may lack an entry that container runtimes would not choose',
      () => entries('linux/amd64', 'linux/arm64', 'linux/amd64/v3', 'unknown/unknown'),
      ['linux/amd64', 'linux/arm64'],
      'linux/amd64 linux/arm64',
    ],
    [
      'lacks a platform if it lacks the first of two entries for it, which container runtimes choose',
      () =>
        entries('linux/amd64', 'linux/arm64', 'linux/s390x').map((each, at) =>
          at < 2 ? each : { ...each, platform: linux },
        ),
      ['linux/amd64', 'linux/s390x'],
      'linux/amd64',
    ],
    [
      'has 386 for its own nodes, if it lacks amd64',
      () => entries('linux/amd64', 'linux/386', 'linux/arm64'),
      ['linux/386', 'linux/arm64'],
      'linux/386 linux/arm64',
    ],
  ];
  for (const [what, index, held, expected] of rows) {
    it(what, async () => {
      putIndex(source, index());
      for (const platform of held) hold(source, platform);
      start({ sparse: [source.host] });
      expect(await resolved()).to.equal(expected);
    });
  }

  it('may lack an entry without a platform', async () => {
    const arm64 = putImage(mirror, 'app', 'arm64');
    putIndex(source, [...entries('linux/amd64'), { mediaType: IMAGE, digest: arm64, size: 1 }]);
    hold(source, 'linux/amd64');
    start({ sparse: [source.host] });
    const { platforms, skipped } = await resolve();
    expect(said({ platforms })).to.equal('linux/amd64');
    expect(skipped.map(({ reason }) => reason)).to.deep.equal([`not in ${source.host} (an entry without a platform)`]);
  });

  it('may lack entries of an index within the index, and that index', async () => {
    const inside = { schemaVersion: 2, mediaType: INDEX, manifests: entries('linux/arm64') };
    const nested = source.put('app', 'manifests', inside);
    const lost = mirror.put('app', 'manifests', { ...inside, manifests: entries('linux/s390x') });
    const index = (digest: string, name: string) => ({ ...entries(name)[0], mediaType: INDEX, digest });
    putIndex(source, [...entries('linux/amd64'), index(nested, 'linux/arm64'), index(lost, 'linux/s390x')]);
    hold(source, 'linux/amd64');
    start({ sparse: [source.host] });
    const { platforms, skipped } = await resolve();
    expect(said({ platforms })).to.equal('linux/amd64');
    expect(skipped.map(({ reason }) => reason)).to.deep.equal([
      `not in ${source.host} (linux/arm64)`,
      `not in ${source.host} (linux/s390x)`,
    ]);
  });

  it('must not have more than 64 platforms to ask for', async () => {
    const many = Array.from({ length: 65 }, (_, at) => ({
      ...entries(`linux/amd64/${at}`)[0],
      platform: { os: 'linux', architecture: 'amd64' },
    }));
    putIndex(source, many);
    start({ sparse: [source.host] });
    expect((await failure()).message).to.equal('the index has more than 64 platforms, and each must be asked for');
    expect(source.asked).to.have.length(1);
  });

  describe('with nothing of an index', () => {
    it('is named with what it lacks', async () => {
      putIndex(mirror);
      behind(false);
      const { code, temporary, message } = await failure();
      expect({ code, temporary }).to.deep.equal({ code: 'not-found', temporary: true });
      expect(message).to.equal(
        `${mirror.host} has none of the platforms of the index (linux/amd64, linux/arm64): copy one of them there; ` +
          `asked instead of ${source.host}: ${mirror.host} not-found`,
      );
    });

    it('counts again once it has something', async () => {
      putIndex(mirror);
      behind(false);
      await failure();
      hold(mirror, 'linux/arm64');
      expect(await resolved()).to.equal('linux/arm64');
    });
  });

  describe('before its source', () => {
    beforeEach(() => {
      for (const server of [mirror, source]) putIndex(server);
      hold(mirror, 'linux/amd64');
      hold(source, 'linux/arm64');
    });

    it('is believed, without one more request', async () => {
      behind(true);
      const found = await resolve();
      expect(said(found)).to.equal('linux/amd64 linux/arm64');
      expect(found).to.deep.include({ skipped: [] }).and.not.have.property('only');
      expect(mirror.asked).to.have.length(1);
      expect(source.asked).to.deep.equal([]);
    });

    const bothLack = (): void => {
      const endpoints = [mirror, source].map(({ host }) => `http://${host}`);
      start({ mirrors: { 'a.test': { endpoints, fallback: false, credentials: 'mirror', sparse: true } } });
    };

    it('counts with what it has, and not with what another one has that lacks something, too', async () => {
      bothLack();
      expect(await resolved('a.test/app:v1')).to.equal('linux/amd64');
      expect(source.asked).to.deep.equal([]);
    });

    it('leaves the image to the next one if it has nothing of it', async () => {
      hold(mirror, 'linux/amd64', reply(404));
      bothLack();
      expect(await resolved('a.test/app:v1')).to.equal('linux/arm64');
    });

    for (const name of ['app:v1', 'app@DIGEST']) {
      it(`is asked for what is known from before it was called sparse, and believed again afterwards, by ${name}`, async () => {
        const image = `${source.host}/${name.replace('DIGEST', putIndex(source))}`;
        const cache = createImageCache(1000);
        for (const isSparse of [false, true, false]) {
          if (isSparse) behind(false, cache);
          else start({}, cache);
          expect(await resolved(image)).to.equal(isSparse ? 'linux/amd64' : 'linux/amd64 linux/arm64');
        }
      });
    }

    it('keeps what was known of a digest while it does not answer', async () => {
      const digest = putIndex(source);
      const cache = createImageCache(1000);
      start({}, cache);
      await resolved(`${source.host}/app@${digest}`);
      mirror.on(`/v2/app/manifests/${digest}`, reply(503));
      behind(false, cache);
      await resolved(`${source.host}/app@${digest}`).catch(() => undefined);
      const known = harness.known(`${source.host}/app@${digest}`, ANYONE);
      expect(said(known ?? expect.fail('forgotten'))).to.equal('linux/amd64 linux/arm64');
    });
  });

  describe('in a cache that the next resolver takes over', () => {
    it('is what its endpoints had, and is asked again in time', async () => {
      putIndex(mirror);
      hold(mirror, 'linux/amd64');
      const cache = createImageCache(1000);
      behind(false, cache);
      await resolved();
      behind(false, cache);
      const before = mirror.asked.length;
      expect(await resolved()).to.equal('linux/amd64');
      expect(mirror.asked).to.have.length(before);
      hold(mirror, 'linux/arm64');
      harness.advance(LATER);
      expect(await resolved()).to.equal('linux/amd64 linux/arm64');
    });

    it('says nothing of what other registries have, although it is not called sparse', async () => {
      const held = [...entries('linux/amd64'), { mediaType: IMAGE, digest: putImage(source, 'app', 'arm64'), size: 1 }];
      for (const server of [mirror, source]) putIndex(server, held);
      const cache = createImageCache(1000);
      start({}, cache);
      expect(await resolved(`${mirror.host}/app:v1`)).to.equal('linux/amd64');
      start({}, cache);
      expect(await resolved(`${mirror.host}/app:v1`)).to.equal('linux/amd64');
      expect(await resolved()).to.equal('linux/amd64 linux/arm64');
    });
  });

  describe('that answers for a manifest', () => {
    type Row = [answer: string, given: Answer, isHeld: boolean];
    const notForHead =
      (status: number): Answer =>
      (request, response) =>
        request.method === 'HEAD' ? reply(status)(request, response) : reply(200, {}, 'linux/arm64')(request, response);
    const rows: Row[] = [
      ['200', reply(200), true],
      ['404', reply(404), false],
      ['410', reply(410), false],
      ['403', reply(403), false],
      ['400', reply(400), false],
      ['412, as a policy of Harbor does', reply(412), false],
      ['405 to HEAD', notForHead(405), true],
      ['501 to HEAD', notForHead(501), true],
      ['403 to HEAD', notForHead(403), true],
      ['400 to HEAD', notForHead(400), true],
      ['200 with another digest', reply(200, { 'docker-content-digest': digestOf('linux/amd64') }, 'x'), false],
    ];
    for (const [answer, given, isHeld] of rows) {
      it(`${answer} ${isHeld ? 'has' : 'lacks'} it`, async () => {
        startSparse('linux/amd64');
        hold(source, 'linux/arm64', given);
        expect(await resolved()).to.equal(isHeld ? 'linux/amd64 linux/arm64' : 'linux/amd64');
      });
    }
    for (const status of [408, 429, 500, 502, 503]) {
      it(`${status} has not said whether it has it`, async () => {
        startSparse('linux/amd64');
        hold(source, 'linux/arm64', reply(status));
        expect((await failure()).temporary).to.equal(true);
        hold(source, 'linux/arm64');
        harness.advance(LATER);
        expect(await resolved()).to.equal('linux/amd64 linux/arm64');
      });
    }
  });
});
