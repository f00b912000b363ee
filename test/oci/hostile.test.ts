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
  EVIL_LOGIN,
  type HostileWorld,
  manifest,
  putSingle,
  shareHostileWorlds,
  startHostileWorld,
  strayed,
} from '../support/hostile-world.ts';
import { IMAGE, INDEX, indexOf, sha256 } from './server.ts';

const GOOD = JSON.stringify(indexOf('linux/amd64'));
const TYPE = ['Content-Type', INDEX] as const;
const CLOSE = ['Connection', 'close'] as const;
const CHUNKED = ['Transfer-Encoding', 'chunked'] as const;
/** An index, compressed from 16 MiB to some kilobytes: the program must never decompress it. */
const BOMB = gzipSync(`${GOOD.slice(0, -1)}${' '.repeat(16 * 1024 * 1024)}}`);
/** Milliseconds for a request that can only end at its deadline. */
const SHORT = 100;

const sha512 = (text: string): string => `sha512:${createHash('sha512').update(text).digest('hex')}`;
const lengthOf = (length: number | string) => ['Content-Length', String(length)] as const;
const answers = (...headers: readonly (readonly [string, string])[]): Speak => says(200, [TYPE, ...headers], GOOD);
const redirects = (location: string): Speak => says(302, [['Location', location]]);
const challenges = (realm: string, more = ''): Speak =>
  says(401, [['WWW-Authenticate', `Bearer realm="${realm}"${more}`]], BODY);
const token = (value: unknown): Speak => says(200, [['Content-Type', 'application/json']], JSON.stringify(value));

/** One row for each class of attack, through the whole resolver; the tables of each part are with that part. */
describe('a hostile registry', () => {
  let world: HostileWorld;
  afterEach(() => world.stop());
  const shared = shareHostileWorlds();

  /** CANARY, BANK and EVIL stand for the ports of those servers. */
  const placed = (text: string): string =>
    text
      .replaceAll('CANARY', String(world.canary.port))
      .replaceAll('BANK', String(world.bank.port))
      .replaceAll('EVIL', String(world.evil.port));
  /** Requires a token, which `/token` gives. */
  function requireToken(realm: string, more = ''): void {
    const refusal = challenges(placed(realm), more);
    world.evil.on('*', (socket, asked) => {
      (asked.headers.get('authorization')?.startsWith('Bearer ') ? answers() : refusal)(socket, asked);
    });
    for (const server of [world.evil, world.bank]) server.on('/token', token({ token: 't' }));
  }
  /** Requires its own login before it redirects. */
  function redirectHolders(location: string): void {
    const refusal = says(401, [['WWW-Authenticate', 'Basic realm="x"']]);
    world.evil.on('*', (socket, asked) => {
      (asked.headers.has('authorization') ? redirects(placed(location)) : refusal)(socket, asked);
    });
  }
  async function expectFailure(code: string, image?: string): Promise<void> {
    const error = await (image === undefined ? world.fails() : world.failsFor(image));
    expect(error).to.include({ code, temporary: ['timeout', 'unavailable', 'rate-limited'].includes(code) });
    await world.expectNoHarm();
  }
  const expectBelieved = async (): Promise<void> => {
    const { digest, platforms } = await world.resolve();
    expect(platforms).to.deep.equal([{ os: 'linux', architecture: 'amd64' }]);
    expect(digest).to.match(/^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/);
    await world.expectNoHarm();
    for (const { text } of world.evil.asked) expect(text).to.not.match(/^cookie:/im);
  };

  describe('cannot lead inwards', () => {
    beforeEach(async () => {
      world = await shared();
      world.names.set('metadata.test', ['169.254.169.254']);
      world.names.set('mixed.test', ['127.0.0.1', '::ffff:169.254.169.254']);
    });
    // All spellings of addresses are in http/address-guard.test.ts, all forbidden ranges in http/addresses.test.ts.
    const inward = [
      'http://127.0.0.1:CANARY/token',
      'https://[::ffff:127.0.0.1]:CANARY/token',
      'http://canary.test:CANARY/token',
      'http://metadata.test/latest/meta-data/',
      'http://mixed.test:CANARY/',
    ];
    for (const place of inward) {
      it(`as ${place} itself`, async () => {
        await expectFailure('forbidden-address', placed(`${place.replace(/^https?:\/\/([^/]*).*/, '$1')}/app:v1`));
      });

      it(`by a redirect to ${place}`, async () => {
        world.evil.on('*', redirects(placed(place)));
        await expectFailure('forbidden-address');
      });

      it(`by the realm ${place}, which gets no login`, async () => {
        requireToken(place);
        expect(await world.fails()).to.include({ code: 'forbidden-address', temporary: false });
        expect(strayed(world.evil, EVIL_LOGIN)).to.deep.equal([]);
        await world.expectNoHarm();
      });

      it(`by the realm ${place} that a redirect names, after its own challenge was answered`, async () => {
        const { names } = world;
        // A world of its own, which remembers how that challenge was answered.
        world = await startHostileWorld();
        for (const [name, addresses] of names) world.names.set(name, addresses);
        redirectHolders(`http://${world.hosts.bank}/v2/app/manifests/v1`);
        world.bank.on('*', challenges(placed(place)));
        await expectFailure('forbidden-address');
        expect(world.bank.asked.length).to.be.greaterThan(0);
      });
    }

    for (const location of ['file:///etc/passwd', 'http://evil.test:EVIL@127.0.0.1:CANARY/', '\t//127.0.0.1:CANARY/']) {
      it(`by a redirect to ${JSON.stringify(location)}`, async () => {
        world.evil.on('*', redirects(placed(location)));
        await expectFailure('forbidden-address');
      });
    }

    it('by a redirect from its own token service', async () => {
      requireToken('http://evil.test:EVIL/token');
      world.evil.on('/token', redirects(placed('http://127.0.0.1:CANARY/latest/meta-data/')));
      await expectFailure('denied');
    });

    for (const between of ['challenge and token', 'redirect and target', 'manifest and config blob']) {
      it(`by another address of its name between ${between}, which is not revealed`, async () => {
        world = await startHostileWorld();
        const realm = placed('Bearer realm="http://evil.test:EVIL/token"');
        const [status, header] = between.startsWith('redirect')
          ? ([302, ['Location', '/next']] as const)
          : ([401, ['WWW-Authenticate', realm]] as const);
        world.evil.on('*', sendsAndCloses(response(status, [header, CLOSE])));
        if (between.startsWith('manifest')) putSingle(world.evil, 'app', { architecture: 'amd64' }, [CLOSE]);
        const later = ['127.0.0.1', '::ffff:a9fe:a9fe'];
        world.names.set('evil.test', () => (world.evil.asked.length === 0 ? ['127.0.0.1'] : later));
        const error = await world.fails();
        expect(error).to.include({ code: 'forbidden-address' });
        expect(error.message).to.not.match(/\d+\.\d+\.\d+\.\d+|::/);
        expect(world.evil.asked).to.have.length(1);
        await world.expectNoHarm();
      });
    }

    it('by a DNS answer that comes late, which delays no other host', async () => {
      world = await startHostileWorld({ timeoutMs: 200 });
      await world.resolveGood();
      world.harness.advance(600_000);
      let answer = (_addresses: readonly string[]): void => undefined;
      const late = new Promise<readonly string[]>((resolve) => {
        answer = resolve;
      });
      world.names.set('evil.test', () => late);
      const asking = world.fails();
      expect((await world.resolveGood()).platforms).to.have.length(1);
      expect(await asking).to.include({ code: 'timeout', temporary: true });
      answer(['169.254.169.254']);
      for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      await world.expectNoHarm();
    });
  });

  describe('whose answer', () => {
    /** Requires a token, and says this when that is requested. */
    const ofToken =
      (speak: Speak): Speak =>
      (socket, asked) => {
        const realm = `http://${asked.headers.get('host')}/token`;
        (asked.target.startsWith('/token') ? speak : challenges(realm))(socket, asked);
      };
    const header = (line: string): Speak => sends(`HTTP/1.1 200 OK\r\n${line}\r\nContent-Length: 2\r\n\r\n{}`);
    const rows: readonly (readonly [what: string, code: string, speak: Speak])[] = [
      // Slow.
      ['never begins', 'timeout', silent],
      ['has headers that drip', 'timeout', drips('HTTP/1.1 200 OK\r\n', 'X-A: a\r\n')],
      ['has a body that drips', 'timeout', drips(head(200, [TYPE, lengthOf(4_000_000)]), ' ')],
      ['has an error that drips', 'timeout', drips(head(500, []), 'x')],
      ['ends before its length', 'timeout', sends(head(200, [TYPE, lengthOf(5000)]), GOOD)],
      ['hints early for ever', 'timeout', floods('', 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n')],
      ['is a token that drips', 'timeout', ofToken(drips(head(200, []), ' '))],
      // Without end, or too large.
      ['has a body without end', 'too-large', floods(head(200, [TYPE]), ' ')],
      ['has chunks for ever', 'too-large', floods(head(200, [TYPE, CHUNKED]), `40\r\n${' '.repeat(64)}\r\n`)],
      ['has an error for ever', 'not-found', floods(head(404, [TYPE]), BODY)],
      ['has headers for ever', 'malformed', floods('HTTP/1.1 200 OK\r\n', 'X-A: a\r\n')],
      ['says that it is too large', 'too-large', sends(head(200, [TYPE, lengthOf('999999999999999')]))],
      ['is a manifest of 5 MB', 'too-large', manifest(' '.repeat(5_000_000))],
      ['is a token without end', 'too-large', ofToken(floods(head(200, []), `{"token":"${BODY}"}`))],
      ['has a header of 100 kB', 'malformed', header(`X-A: ${'a'.repeat(100_000)}`)],
      // Compressed.
      ['is a bomb', 'malformed', says(200, [TYPE, ['Content-Encoding', 'gzip']], BOMB)],
      ['is a bomb beside identity', 'malformed', says(200, [TYPE, ['Content-Encoding', 'identity, br']], BOMB)],
      ['is compressed and does not say so', 'malformed', says(200, [TYPE], BOMB)],
      // No HTTP, or another answer than it seems.
      ['is no HTTP', 'malformed', sends('SSH-2.0-OpenSSH_9.6\r\n\r\n')],
      ['has a NUL in a header', 'malformed', header('X-A: a\0b')],
      ['has a bare line feed in a header', 'malformed', header('X-A: a\nX-B b')],
      ['has a space in a name', 'malformed', header('X A: a')],
      ['has two lengths', 'malformed', header('Content-Length: 1')],
      ['has a length and chunks', 'malformed', header('Transfer-Encoding: chunked')],
      ['has chunks of no number', 'malformed', sends(head(200, [TYPE, CHUNKED]), 'zz\r\n', GOOD)],
      ['is longer than its length', 'malformed', sends(head(200, [TYPE, lengthOf(10)]), GOOD)],
      ['switches protocols', 'unavailable', sends('HTTP/1.1 101 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n')],
      ['has a status of 999', 'unavailable', says(999, [], BODY)],
      ['redirects to itself', 'malformed', redirects('')],
      ['was not modified', 'unsupported', says(304)],
      ['asks for a pause of a year', 'rate-limited', says(429, [['Retry-After', '31536000']], BODY)],
      ['hangs up before its length', 'unavailable', sendsAndCloses(head(200, [TYPE, lengthOf(5000)]), GOOD)],
      ['hangs up at once', 'unavailable', (socket) => socket.destroy()],
      // False.
      ['names the digest of another', 'malformed', answers(['Docker-Content-Digest', sha256('another')])],
      ['names a sha512 of another', 'malformed', answers(['Docker-Content-Digest', sha512('another')])],
      ['is an image by its type', 'malformed', says(200, [['Content-Type', IMAGE]], GOOD)],
      ['is HTML', 'malformed', says(200, [['Content-Type', 'text/html']], `<h1>${BODY}</h1>`)],
      ['is a token with a line break', 'malformed', ofToken(token({ token: 'a\r\nX-Injected: yes' }))],
      ['is the page of an internal service for a token', 'malformed', ofToken(token({ Token: BODY, secret: BODY }))],
      // Of a thousand parts.
      ['has a thousand equal entries', 'malformed', manifest({ manifests: Array(1000).fill({ digest: sha256('x') }) })],
      [
        'names a thousand platforms',
        'too-large',
        manifest(indexOf(...Array.from({ length: 1000 }, (_, at) => `os${at}/amd64`))),
      ],
      ['has a challenge of a thousand schemes', 'denied', says(401, [['WWW-Authenticate', 'a, '.repeat(1000)]])],
    ];
    for (const [what, code, speak] of rows) {
      it(`${what} is ${code}`, async () => {
        world = await shared(code === 'timeout' ? { timeoutMs: SHORT } : {});
        world.evil.on('*', speak);
        await expectFailure(code);
      });
    }
  });

  describe('whose index', () => {
    beforeEach(async () => {
      world = await startHostileWorld();
    });
    const entryOf = (platform: object, text = 'x') => ({ mediaType: IMAGE, digest: sha256(text), platform });

    it('names 32 entries that are slow to answer has only one deadline for all', async () => {
      await world.stop();
      world = await startHostileWorld({ timeoutMs: SHORT });
      const timers: NodeJS.Timeout[] = [];
      world.evil.on('*', (socket, asked) => {
        timers.push(setTimeout(() => says(404)(socket, asked), 50));
      });
      const manifests = Array.from({ length: 32 }, (_, at) => ({
        ...entryOf({ os: `os${at}`, architecture: 'amd64' }, `${at}`),
        mediaType: INDEX,
      }));
      world.evil.on('/v2/app/manifests/v1', manifest({ schemaVersion: 2, manifests }));
      expect(await world.fails()).to.include({ code: 'timeout', temporary: true });
      expect(world.evil.asked.length).to.be.below(32);
      for (const timer of timers) clearTimeout(timer);
      await world.expectNoHarm();
    });

    for (const [entries, own, within, requests] of [
      [1000, 400, [298, 300], undefined],
      [1001, 400, [299, 300], 3],
      [33_000, 968, Array.from({ length: 32 }, () => 1000), 2],
    ] as const) {
      it(`has ${entries} entries together with the indexes within it is ${requests === undefined ? 'read' : 'left'}`, async () => {
        const images = (os: string, length: number): object[] =>
          Array.from({ length }, (_, at) => entryOf({ os, architecture: 'amd64' }, `${os} ${at}`));
        const manifests = within.map((length, at) => {
          const platform = { os: `os${at}`, architecture: 'amd64' };
          const body = JSON.stringify({ schemaVersion: 2, manifests: images(platform.os, length) });
          world.evil.on(`/v2/app/manifests/${sha256(body)}`, manifest(body));
          return { mediaType: INDEX, digest: sha256(body), platform };
        });
        const body = { schemaVersion: 2, manifests: [...manifests, ...images('linux', own)] };
        world.evil.on('/v2/app/manifests/v1', manifest(body));
        if (requests === undefined) expect((await world.resolve()).platforms).to.have.length(3);
        else {
          expect(await world.fails()).to.include({ code: 'too-large', temporary: false });
          expect(world.evil.asked.filter(({ target }) => target.includes('/manifests/'))).to.have.length(requests);
        }
        await world.expectNoHarm();
      });
    }
  });

  describe('that is only odd', () => {
    beforeEach(async () => {
      world = await startHostileWorld();
    });
    const rows: readonly (readonly [what: string, speak: Speak])[] = [
      ['is of version 1.0', sendsAndCloses(`HTTP/1.0 200 OK\r\nContent-Type: ${INDEX}\r\n\r\n`, GOOD)],
      ['names a digest of no known kind', answers(['Docker-Content-Digest', 'md5:d41d8cd98f00b204e9800998ecf8427e'])],
      ['names its sha512', answers(['Docker-Content-Digest', sha512(GOOD)])],
      ['has headers named as parts of objects', answers(['__proto__', 'a'], ['constructor', 'b'], ['toString', 'c'])],
      ['says each header twice', answers(['Content-Type', 'text/html'], ['ETag', '"a"'], ['ETag', '"b"'])],
      ['hints once', sends('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n', response(200, [TYPE], GOOD))],
      [
        'has chunks and trailers',
        sends(
          head(200, [TYPE, CHUNKED]),
          `${GOOD.length.toString(16)};a="b"\r\n${GOOD}\r\n0\r\nDocker-Content-Digest: x\r\n\r\n`,
        ),
      ],
    ];
    for (const [what, speak] of rows) {
      it(`and ${what} is understood`, async () => {
        world.evil.on('*', speak);
        await expectBelieved();
      });
    }

    for (const etag of [`"${'x'.repeat(4000)}"`, '"a" , "b"', 'unquoted', '"a b"', '"\u00e4"', 'W/""', '"', '']) {
      it(`and has the ETag ${JSON.stringify(etag.slice(0, 20))} is not asked with that`, async () => {
        const whole = response(200, [TYPE, ['ETag', etag]], GOOD);
        world.evil.on('*', (socket, { method }) => void socket.write(method === 'HEAD' ? response(200) : whole));
        await world.resolve();
        world.harness.advance(600_000);
        await world.resolve();
        expect(world.evil.asked.map(({ method }) => method)).to.deep.equal(['GET', 'HEAD', 'GET']);
        for (const { headers } of world.evil.asked) expect(headers.has('if-none-match')).to.equal(false);
        await world.expectNoHarm();
      });
    }
  });

  describe('that sends a second answer, which nobody asked for,', () => {
    const other = response(200, [TYPE], JSON.stringify(indexOf('linux/s390x')));
    const first = response(200, [TYPE], GOOD);
    const seconds: readonly (readonly [what: string, speak: Speak])[] = [
      ['with the first', sends(first, other)],
      [
        'after a HEAD',
        (socket, { method }) => void socket.write(method === 'HEAD' ? Buffer.concat([response(200), other]) : first),
      ],
      [
        'a moment later',
        (socket) => {
          socket.write(first);
          setImmediate(() => socket.write(other));
        },
      ],
    ];
    for (const [what, speak] of seconds) {
      it(`${what} reaches no other request by that`, async () => {
        world = await startHostileWorld();
        world.evil.on('*', speak);
        const third = JSON.stringify(indexOf('linux/riscv64'));
        world.evil.on('/v2/next/manifests/v1', (socket) => void socket.write(response(200, [TYPE], third)));
        for (let round = 0; round < 5; round += 1) {
          // The first may fail, because it may be unclear what belongs to it. The next one must get its own answer.
          const answer = await world.resolve(`app:v${round}`).catch(() => undefined);
          expect(answer?.platforms ?? []).to.not.deep.include({ os: 'linux', architecture: 's390x' });
          world.harness.advance(600_000);
          expect(await world.resolve('next:v1')).to.include({ digest: sha256(third) });
        }
        await world.expectNoHarm();
      });
    }
  });
});
