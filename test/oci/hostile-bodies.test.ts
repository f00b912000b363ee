import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import {
  drips,
  floods,
  head,
  response,
  type Speak,
  says,
  sends,
  sendsAndCloses,
  silent,
} from '../support/hostile-registry.ts';
import {
  BODY,
  type HostileWorld,
  manifest,
  putSingle,
  shareHostileWorlds,
  startHostileWorld,
} from '../support/hostile-world.ts';
import { IMAGE, INDEX, indexOf, sha256 } from './server.ts';

const sha512 = (text: string): string => `sha512:${createHash('sha512').update(text).digest('hex')}`;

const GOOD = JSON.stringify(indexOf('linux/amd64'));
const TYPE = ['Content-Type', INDEX] as const;
const MEBIBYTE = 1024 * 1024;

/** An index, compressed from 64 MiB to some kilobytes: the program must never decompress it. */
const BOMB = Buffer.from(`${GOOD.slice(0, -1)}${' '.repeat(64 * MEBIBYTE)}}`);

/** Milliseconds for a request that can only end at its deadline. */
const SHORT = 100;

type Row = readonly [what: string, speak: Speak, code: string];

/** Entries of an index that are indexes, each for another platform. */
const nested = (count: number): object[] =>
  Array.from({ length: count }, (_, index) => ({
    mediaType: INDEX,
    digest: sha256(`${index}`),
    platform: { os: `os${index % 100}`, architecture: index < 100 ? 'amd64' : 'arm64' },
  }));

describe('a hostile registry whose answer', () => {
  let world: HostileWorld;
  afterEach(() => world.stop());
  const shared = shareHostileWorlds();

  function fails(rows: readonly Row[]): void {
    for (const [what, speak, code] of rows) {
      it(`${what} is ${code}`, async () => {
        world = await shared(code === 'timeout' ? { timeoutMs: SHORT } : {});
        world.evil.on('*', speak);
        expect(await world.fails()).to.include({ code, temporary: ['timeout', 'unavailable'].includes(code) });
        await world.expectNoHarm();
      });
    }
  }

  describe('arrives slowly and', () => {
    fails([
      ['never begins', silent, 'timeout'],
      ['has a status line that drips', drips('HTTP/1.1 200 OK', ' '), 'timeout'],
      ['has a header that drips', drips('HTTP/1.1 200 OK\r\nX-A: ', 'a'), 'timeout'],
      ['has headers that drip', drips('HTTP/1.1 200 OK\r\n', 'X-A: a\r\n'), 'timeout'],
      ['has a body that drips', drips(head(200, [TYPE]), ' '), 'timeout'],
      [
        'has a body that drips up to its length',
        drips(head(200, [TYPE, ['Content-Length', '4000000']]), ' '),
        'timeout',
      ],
      ['has chunks that drip', drips(head(200, [TYPE, ['Transfer-Encoding', 'chunked']]), '1\r\n \r\n'), 'timeout'],
      ['has an error that drips', drips(head(500, []), BODY.charAt(0)), 'timeout'],
      ['has a redirect that drips', drips(head(302, [['Location', '/next']]), ' '), 'timeout'],
      ['ends before its length', sends(head(200, [TYPE, ['Content-Length', '5000']]), GOOD), 'timeout'],
      ['has no last chunk', sends(head(200, [TYPE, ['Transfer-Encoding', 'chunked']]), '1\r\n{\r\n'), 'timeout'],
    ]);

    it('never comes is waited for as long as a request may take, and no longer', async () => {
      world = await startHostileWorld({ timeoutMs: SHORT });
      world.evil.on('*', silent);
      expect((await world.fails()).message).to.include('within 0.1 s');
    });

    it('comes from a server that accepts and sends nothing is timeout', async () => {
      world = await startHostileWorld({ timeoutMs: SHORT });
      world.evil.greet(() => undefined);
      expect(await world.fails()).to.include({ code: 'timeout', temporary: true });
      await world.expectNoHarm();
    });

    it('comes from a server that drips from the start fails in time', async () => {
      world = await startHostileWorld({ timeoutMs: SHORT });
      const drip = drips('', ' ');
      world.evil.greet((socket) => drip(socket, { method: '', target: '', headers: new Map(), text: '' }));
      expect((await world.fails()).code).to.be.oneOf(['timeout', 'unavailable', 'malformed']);
      await world.expectNoHarm();
    });

    it('is slow for each of 32 children, but has only one deadline', async () => {
      world = await startHostileWorld({ timeoutMs: SHORT });
      const manifests = nested(32);
      const timers: NodeJS.Timeout[] = [];
      world.evil.on('*', (socket, asked) => {
        timers.push(setTimeout(() => says(404)(socket, asked), 50));
      });
      world.evil.on('/v2/app/manifests/v1', manifest({ schemaVersion: 2, manifests }));
      expect(await world.fails()).to.include({ code: 'timeout', temporary: true });
      expect(world.evil.asked.length).to.be.below(32);
      for (const timer of timers) clearTimeout(timer);
      await world.expectNoHarm();
    });
  });

  describe('has no end and', () => {
    fails([
      ['has a body without length', floods(head(200, [TYPE]), ' '), 'too-large'],
      [
        'has chunks for ever',
        floods(head(200, [TYPE, ['Transfer-Encoding', 'chunked']]), `40\r\n${' '.repeat(64)}\r\n`),
        'too-large',
      ],
      ['has an error for ever', floods(head(404, [TYPE]), BODY), 'not-found'],
      ['has headers for ever', floods('HTTP/1.1 200 OK\r\n', 'X-A: a\r\n'), 'malformed'],
      ['has one header for ever', floods('HTTP/1.1 200 OK\r\nX-A: ', 'a'), 'malformed'],
      ['has one name of a header for ever', floods('HTTP/1.1 200 OK\r\n', 'a'), 'malformed'],
      [
        'has trailers for ever',
        floods(`${head(200, [['Transfer-Encoding', 'chunked']])}0\r\n`, 'X-A: a\r\n'),
        'malformed',
      ],
    ]);
  });

  describe('is too large and', () => {
    const many = (length: number, value: unknown): Speak =>
      manifest({ schemaVersion: 2, manifests: Array.from({ length }, () => value) });
    fails([
      ['says so', sends(head(200, [TYPE, ['Content-Length', String(5 * MEBIBYTE)]])), 'too-large'],
      ['says much more', sends(head(200, [TYPE, ['Content-Length', '999999999999999']])), 'too-large'],
      ['is a manifest of 5 MB', manifest(' '.repeat(5_000_000)), 'too-large'],
      ['has 1,000 equal entries', many(1000, { mediaType: IMAGE, digest: sha256('x') }), 'malformed'],
    ]);

    for (const [what, speak] of [
      ['says so', sends(head(200, [['Content-Length', '100000000']]))],
      ['does not state its length', floods(head(200, []), ' ')],
    ] as const) {
      it(`is a config blob of 100 MB and ${what}`, async () => {
        world = await startHostileWorld();
        world.evil.on(putSingle(world.evil, 'app', { architecture: 'amd64' }), speak);
        expect(await world.fails()).to.include({ code: 'too-large', temporary: false });
        await world.expectNoHarm();
      });
    }

    it('has 1,000 other children leads to few requests', async () => {
      world = await startHostileWorld();
      const manifests = nested(1000);
      world.evil.on('/v2/app/manifests/v1', manifest({ schemaVersion: 2, manifests }));
      expect(await world.fails()).to.include({ code: 'too-large', temporary: false });
      expect(world.evil.asked.length).to.be.below(50);
      await world.expectNoHarm();
    });

    /** An index of `own` images, and of indexes with these numbers of images, for other platforms. */
    const putTogether = (own: number, within: readonly number[]): void => {
      const images = (os: string, length: number): object[] =>
        Array.from({ length }, (_, at) => ({
          mediaType: IMAGE,
          digest: sha256(`${os} ${at}`),
          platform: { os, architecture: 'amd64' },
        }));
      const manifests = within.map((length, at) => {
        const os = `os${at}`;
        const body = JSON.stringify({ schemaVersion: 2, manifests: images(os, length) });
        world.evil.on(`/v2/app/manifests/${sha256(body)}`, manifest(body));
        return { mediaType: INDEX, digest: sha256(body), platform: { os, architecture: 'amd64' } };
      });
      const body = { schemaVersion: 2, manifests: [...manifests, ...images('linux', own)] };
      world.evil.on('/v2/app/manifests/v1', manifest(body));
    };

    it('has 1,000 entries together with the indexes within it is read', async () => {
      world = await startHostileWorld();
      putTogether(400, [298, 300]);
      const { platforms } = await world.resolve();
      expect(platforms).to.deep.include.members([
        { os: 'os1', architecture: 'amd64' },
        { os: 'linux', architecture: 'amd64' },
      ]);
      await world.expectNoHarm();
    });

    for (const [what, own, within, requests] of [
      ['1,001 entries', 400, [299, 300], 3],
      ['33,000 entries', 968, Array.from({ length: 32 }, () => 1000), 2],
    ] as const) {
      it(`has ${what} together with the indexes within it leads to no more requests`, async () => {
        world = await startHostileWorld();
        putTogether(own, within);
        const { code, message } = await world.fails();
        expect(code).to.equal('too-large');
        expect(message).to.include('entries together with the indexes within it; at most 1000 are read');
        expect(world.evil.asked.filter(({ target }) => target.includes('/manifests/'))).to.have.length(requests);
        await world.expectNoHarm();
      });
    }

    for (const [what, length, requests] of [
      ['of 4 MiB together is read', 1.2 * MEBIBYTE, undefined],
      ['of more than 4 MiB together is too large, and the rest is not asked for', 1.5 * MEBIBYTE, 4],
    ] as const) {
      it(`has three indexes within it, ${what}`, async () => {
        world = await startHostileWorld();
        const manifests = ['os0', 'os1', 'os2', 'os3'].map((os, at) => {
          const body = JSON.stringify(indexOf(`${os}/amd64`)).padEnd(at < 3 ? length : 0);
          world.evil.on(`/v2/app/manifests/${sha256(body)}`, manifest(body));
          return { mediaType: INDEX, digest: sha256(body), platform: { os, architecture: 'amd64' } };
        });
        world.evil.on('/v2/app/manifests/v1', manifest({ schemaVersion: 2, manifests }));
        if (requests === undefined) expect((await world.resolve()).platforms).to.have.length(4);
        else {
          expect(await world.fails()).to.include({ code: 'too-large', temporary: false });
          expect(world.evil.asked.filter(({ target }) => target.includes('/manifests/'))).to.have.length(requests);
        }
        await world.expectNoHarm();
      });
    }

    it('nests indexes to a depth of 50 is followed for three', async () => {
      world = await startHostileWorld();
      let inner = GOOD;
      for (let depth = 1; depth < 50; depth += 1) {
        const digest = sha256(inner);
        world.evil.on(`/v2/app/manifests/${digest}`, manifest(inner));
        inner = JSON.stringify({ schemaVersion: 2, manifests: [{ mediaType: INDEX, digest }] });
      }
      world.evil.on('/v2/app/manifests/v1', manifest(inner));
      expect(await world.fails()).to.include({ code: 'too-large', temporary: false });
      expect(world.evil.asked.length).to.be.below(6);
      await world.expectNoHarm();
    });

    it('has nested indexes that multiply leads to few requests', async () => {
      world = await startHostileWorld();
      let count = 0;
      world.evil.on('*', (socket, asked) => {
        const digest = /sha256:\w+/.exec(asked.target)?.[0];
        const manifests = Array.from({ length: 30 }, () => ({ mediaType: INDEX, digest: sha256(`${++count}`) }));
        const speak = digest === undefined ? manifest({ schemaVersion: 2, manifests }) : says(404);
        speak(socket, asked);
      });
      expect(await world.fails()).to.include({ code: 'unsupported' });
      expect(world.evil.asked.length).to.be.below(70);
      await world.expectNoHarm();
    });

    it('names itself is malformed', async () => {
      world = await startHostileWorld();
      const manifests = [{ mediaType: INDEX, digest: sha256('itself') }];
      world.evil.on('*', says(200, [TYPE], JSON.stringify({ schemaVersion: 2, manifests })));
      expect(await world.fails()).to.include({ code: 'malformed', temporary: false });
      await world.expectNoHarm();
    });
  });

  describe('is compressed and', () => {
    const encoded = (encoding: string, body: Uint8Array): Speak =>
      says(200, [TYPE, ['Content-Encoding', encoding]], body);
    const gzip = gzipSync(BOMB);
    fails([
      ['is a bomb of gzip', encoded('gzip', gzip), 'malformed'],
      ['is a bomb of x-gzip', encoded('x-gzip', gzip), 'malformed'],
      ['is a bomb of GZIP', encoded('GZIP', gzip), 'malformed'],
      ['is a bomb of deflate', encoded('deflate', gzip), 'malformed'],
      ['is a bomb of br', encoded('br', gzip), 'malformed'],
      ['is a bomb of zstd', encoded('zstd', gzip), 'malformed'],
      ['is a bomb within a bomb', encoded('gzip, gzip', gzip), 'malformed'],
      ['is a bomb beside identity', encoded('identity, gzip', gzip), 'malformed'],
      ['says nothing', encoded('', gzip), 'malformed'],
      [
        'says it twice',
        says(200, [TYPE, ['Content-Encoding', 'identity'], ['Content-Encoding', 'gzip']], gzip),
        'malformed',
      ],
      ['does not state its compression', says(200, [TYPE], gzip), 'malformed'],
      ['states a compression that it does not have', encoded('gzip', Buffer.from(GOOD)), 'malformed'],
      [
        'is compressed for transfer only',
        sends(
          head(200, [TYPE, ['Transfer-Encoding', 'gzip, chunked']]),
          `${gzip.length.toString(16)}\r\n`,
          gzip,
          '\r\n0\r\n\r\n',
        ),
        'malformed',
      ],
    ]);
  });

  describe('lies and', () => {
    const lying = (...more: readonly (readonly [string, string])[]): Speak => says(200, [TYPE, ...more], GOOD);
    fails([
      [
        'hangs up before its length',
        sendsAndCloses(head(200, [TYPE, ['Content-Length', '5000']]), GOOD),
        'unavailable',
      ],
      [
        'hangs up before its last chunk',
        sendsAndCloses(head(200, [['Transfer-Encoding', 'chunked']]), '1\r\n{\r\n'),
        'unavailable',
      ],
      ['hangs up at once', (socket) => socket.destroy(), 'unavailable'],
      ['hangs up after its head', sendsAndCloses('HTTP/1.1 200 OK\r\nX'), 'unavailable'],
      ['is longer than its length', sends(head(200, [TYPE, ['Content-Length', '10']]), GOOD), 'malformed'],
      ['has no length', sends(head(200, [TYPE, ['Content-Length', '0']]), GOOD), 'malformed'],
      ['names the digest of another', lying(['Docker-Content-Digest', sha256('another')]), 'malformed'],
      ['names a sha512 of another', lying(['Docker-Content-Digest', sha512('another')]), 'malformed'],
      ['is an image by its type', says(200, [['Content-Type', IMAGE]], GOOD), 'malformed'],
      ['has no body', says(200, [TYPE]), 'malformed'],
      ['has no content', says(204), 'malformed'],
      ['was not modified', says(304), 'unsupported'],
      ['is HTML', says(200, [['Content-Type', 'text/html']], `<h1>${BODY}</h1>`), 'malformed'],
      ['names an empty index', says(200, [TYPE], '{"manifests":[]}'), 'unsupported'],
    ]);

    const believed: readonly (readonly [what: string, speak: Speak])[] = [
      ['names no type', says(200, [], GOOD)],
      ['says text/html', says(200, [['Content-Type', 'text/html']], GOOD)],
      [
        'says its type in capitals, with parameters',
        says(200, [['Content-Type', `${INDEX.toUpperCase()} ; charset="UTF-8"; q=1`]], GOOD),
      ],
      ['says an empty type', says(200, [['Content-Type', '']], GOOD)],
      ['says 8 kB of type', says(200, [['Content-Type', 'x'.repeat(8000)]], GOOD)],
      ['names no digest', says(200, [TYPE], GOOD)],
      ['names a digest of garbage', lying(['Docker-Content-Digest', `sha256:${'g'.repeat(64)}`])],
      ['names a digest of 8 kB', lying(['Docker-Content-Digest', 'a'.repeat(8000)])],
      ['names a digest of no known kind', lying(['Docker-Content-Digest', 'md5:d41d8cd98f00b204e9800998ecf8427e'])],
      ['names its sha512', lying(['Docker-Content-Digest', sha512(GOOD)])],
    ];
    for (const [what, speak] of believed) {
      it(`${what} is understood`, async () => {
        world = await startHostileWorld();
        world.evil.on('*', speak);
        const { digest, platforms } = await world.resolve();
        expect(platforms).to.deep.equal([{ os: 'linux', architecture: 'amd64' }]);
        expect(digest).to.match(/^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/);
        await world.expectNoHarm();
      });
    }

    it('is another than its digest in the name is malformed, whatever it names itself', async () => {
      world = await startHostileWorld();
      const asked = sha256('what was asked for');
      world.evil.on('*', says(200, [TYPE, ['Docker-Content-Digest', asked]], GOOD));
      expect(await world.fails(`app@${asked}`)).to.include({ code: 'malformed', temporary: false });
      world.evil.on('*', manifest(GOOD));
      expect(await world.fails(`app@${asked}`)).to.include({ code: 'malformed', temporary: false });
      await world.expectNoHarm();
    });

    it('is another than its digest in the index is malformed', async () => {
      world = await startHostileWorld();
      world.evil.on('*', manifest(GOOD));
      const manifests = [{ mediaType: INDEX, digest: sha256('another') }];
      world.evil.on('/v2/app/manifests/v1', manifest({ schemaVersion: 2, manifests }));
      expect(await world.fails()).to.include({ code: 'malformed', temporary: false });
      await world.expectNoHarm();
    });

    it('is another config blob is malformed', async () => {
      world = await startHostileWorld();
      const path = putSingle(world.evil, 'app', { architecture: 'amd64' });
      world.evil.on(path, says(200, [], '{"architecture":"arm64"}'));
      expect(await world.fails()).to.include({ code: 'malformed', temporary: false });
      await world.expectNoHarm();
    });

    for (const etag of [
      '"'.padEnd(4000, 'x').concat('"'),
      '"a" , "b"',
      'unquoted',
      '"a b"',
      '"\u00e4"',
      'W/""',
      '"',
      '',
    ]) {
      it(`has the ETag ${JSON.stringify(etag.slice(0, 20))} (${etag.length}) is not asked with that`, async () => {
        world = await startHostileWorld();
        const headers = [TYPE, ['ETag', etag]] as const;
        world.evil.on('*', (socket, asked) => {
          const whole = response(200, headers, GOOD);
          socket.write(asked.method === 'HEAD' ? response(200, []) : whole);
        });
        await world.resolve();
        world.harness.advance(600_000);
        await world.resolve();
        expect(world.evil.asked.map(({ method }) => method)).to.deep.equal(['GET', 'HEAD', 'GET']);
        for (const { headers } of world.evil.asked) expect(headers.has('if-none-match')).to.equal(false);
        await world.expectNoHarm();
      });
    }
  });
});
