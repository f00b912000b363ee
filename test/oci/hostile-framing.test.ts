import { expect } from 'chai';
import {
  drips,
  floods,
  type HeaderLines,
  head,
  response,
  type Speak,
  says,
  sends,
  sendsAndCloses,
} from '../support/hostile-registry.ts';
import { BODY, type HostileWorld, shareHostileWorlds, startHostileWorld } from '../support/hostile-world.ts';
import { INDEX, indexOf, sha256 } from './server.ts';

const GOOD = JSON.stringify(indexOf('linux/amd64'));
const LENGTH = ['Content-Length', String(GOOD.length)] as const;
const TYPE = ['Content-Type', INDEX] as const;

describe('a hostile registry whose HTTP answer', () => {
  let world: HostileWorld;
  afterEach(() => world.stop());
  const shared = shareHostileWorlds();

  const raw = (...lines: readonly string[]): Speak =>
    sends(
      `HTTP/1.1 200 OK\r\n${lines.map((line) => `${line}\r\n`).join('')}Content-Length: ${GOOD.length}\r\n\r\n`,
      GOOD,
    );
  const chunked = (...more: HeaderLines): string => head(200, [TYPE, ['Transfer-Encoding', 'chunked'], ...more]);
  const chunk = `${GOOD.length.toString(16)}\r\n${GOOD}\r\n`;

  const rows: readonly (readonly [what: string, speak: Speak, code: string])[] = [
    ['is none', sends('SSH-2.0-OpenSSH_9.6\r\n\r\n'), 'malformed'],
    ['is of version 0.9', sendsAndCloses(GOOD), 'malformed'],
    ['is of version 2', sends(Buffer.from('000000040000000000', 'hex')), 'malformed'],
    ['is of version 9.9', sends(`HTTP/9.9 200 OK\r\nContent-Length: ${GOOD.length}\r\n\r\n`, GOOD), 'malformed'],
    ['is that of a client', sends('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), 'malformed'],
    ['is an alert of TLS', sends(Buffer.from('15030300020228', 'hex')), 'malformed'],
    ['is zeros', sends(Buffer.alloc(1000)), 'malformed'],
    ['has a status of letters', sends('HTTP/1.1 OK 200\r\n\r\n'), 'malformed'],
    ['has a status of 99', sends('HTTP/1.1 99 Low\r\n\r\n'), 'malformed'],
    ['has a status of four digits', sends('HTTP/1.1 2000 High\r\n\r\n'), 'malformed'],
    ['has a negative status', sends('HTTP/1.1 -200 Low\r\n\r\n'), 'malformed'],
    ['has a NUL in a value', raw('X-A: a\0b'), 'malformed'],
    ['has a NUL in a name', raw('X\0A: a'), 'malformed'],
    ['has a bare line feed in a value', raw('X-A: a\nX-B b'), 'malformed'],
    ['has a bare carriage return in a value', raw('X-A: a\rX-B: b'), 'malformed'],
    ['has no colon', raw('X-A'), 'malformed'],
    ['has no name', raw(': a'), 'malformed'],
    ['has a space in a name', raw('X A: a'), 'malformed'],
    ['has a space after a name', raw('Content-Type : x'), 'malformed'],
    ['has letters of no name', raw('X-\u00e4: a'), 'malformed'],
    ['has a header of 100 kB', raw(`X-A: ${'a'.repeat(100_000)}`), 'malformed'],
    ['has 10,000 headers', raw(...Array.from({ length: 10_000 }, (_, index) => `X-${index}: a`)), 'malformed'],
    ['has a reason for ever', floods('HTTP/1.1 200 ', 'a'), 'timeout'],
    ['has a length of letters', sends(head(200, [TYPE, ['Content-Length', 'ten']]), GOOD), 'malformed'],
    ['has a negative length', sends(head(200, [TYPE, ['Content-Length', '-1']]), GOOD), 'malformed'],
    ['has a signed length', sends(head(200, [TYPE, ['Content-Length', `+${GOOD.length}`]]), GOOD), 'malformed'],
    ['has a hexadecimal length', sends(head(200, [TYPE, ['Content-Length', '0xff']]), GOOD), 'malformed'],
    ['has a list of lengths', sends(head(200, [TYPE, ['Content-Length', '1, 2']]), GOOD), 'malformed'],
    ['has two lengths', sends(head(200, [TYPE, LENGTH, ['Content-Length', '1']]), GOOD), 'malformed'],
    ['has a length beyond all numbers', sends(head(200, [['Content-Length', '9'.repeat(40)]]), GOOD), 'malformed'],
    ['has a length and chunks', sends(chunked(LENGTH), chunk, '0\r\n\r\n'), 'malformed'],
    [
      'has chunks and a length',
      sends(head(200, [LENGTH, ['Transfer-Encoding', 'chunked']]), chunk, '0\r\n\r\n'),
      'malformed',
    ],
    ['has chunks of no number', sends(chunked(), 'zz\r\n', GOOD), 'malformed'],
    ['has chunks of negative size', sends(chunked(), '-1\r\n', GOOD), 'malformed'],
    ['has a chunk beyond all numbers', sends(chunked(), `${'f'.repeat(40)}\r\n`, GOOD), 'malformed'],
    ['has chunks that are longer than they say', sends(chunked(), `2\r\n${GOOD}\r\n0\r\n\r\n`), 'malformed'],
    ['continues for ever', floods('', 'HTTP/1.1 100 Continue\r\n\r\n'), 'unavailable'],
    ['hints early for ever', floods('', 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'), 'timeout'],
    ['is processing for ever', drips('', 'HTTP/1.1 102 Processing\r\n\r\n'), 'timeout'],
    [
      'switches protocols',
      sends('HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n', GOOD),
      'unavailable',
    ],
    ['has a status of 600', says(600, [], BODY), 'unavailable'],
    ['has a status of 999', says(999, [], BODY), 'unavailable'],
    ['has a status of 299', says(299, [], BODY), 'malformed'],
    ['offers choices', says(300, [['Location', '/x']], BODY), 'unsupported'],
    ['wants a proxy', says(305, [['Location', 'http://127.0.0.1/']], BODY), 'unsupported'],
    ['requires a login at a proxy', says(407, [['Proxy-Authenticate', 'Basic realm="x"']], BODY), 'unsupported'],
    ['wants an upgrade', says(426, [['Upgrade', 'h2c']], BODY), 'unsupported'],
    ['asks for a pause of a year', says(429, [['Retry-After', '31536000']], BODY), 'rate-limited'],
    [
      'asks for a pause until the end of time',
      says(503, [['Retry-After', 'Fri, 31 Dec 9999 23:59:59 GMT']]),
      'unavailable',
    ],
  ];
  for (const [what, speak, code] of rows) {
    it(`${what} is ${code}`, async () => {
      world = await shared(code === 'timeout' ? { timeoutMs: 100 } : {});
      world.evil.on('*', speak);
      const temporary = ['timeout', 'unavailable', 'rate-limited'].includes(code);
      expect(await world.fails()).to.include({ code, temporary });
      await world.expectNoHarm();
    });
  }

  const odd: readonly (readonly [what: string, speak: Speak])[] = [
    ['is of version 1.0', sendsAndCloses(`HTTP/1.0 200 OK\r\nContent-Type: ${INDEX}\r\n\r\n`, GOOD)],
    ['has no reason', sends(`HTTP/1.1 200\r\nContent-Length: ${GOOD.length}\r\n\r\n`, GOOD)],
    ['has 900 headers', raw(...Array.from({ length: 900 }, (_, index) => `X-${index}: a`))],
    ['has a header of 15 kB', raw(`X-A: ${'a'.repeat(15_000)}`)],
    ['has headers named after what objects have', raw('__proto__: a', 'constructor: b', 'toString: c')],
    ['says each header twice', raw(`Content-Type: ${INDEX}`, 'Content-Type: text/html', 'ETag: "a"', 'ETag: "b"')],
    ['hints once', sends('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n', response(200, [TYPE], GOOD))],
    ['has chunks and trailers', sends(chunked(), chunk, '0\r\nDocker-Content-Digest: x\r\n\r\n')],
    ['has chunks with words', sends(chunked(), `${GOOD.length.toString(16)};a="b"\r\n${GOOD}\r\n0\r\n\r\n`)],
    ['sets cookies', says(200, [TYPE, ['Set-Cookie', `a=${BODY}`], ['Set-Cookie', 'b=c']], GOOD)],
    [
      'advertises another place',
      says(200, [TYPE, ['Alt-Svc', 'h2="canary.test:443"'], ['Refresh', '0; url=http://127.0.0.1/']], GOOD),
    ],
  ];
  for (const [what, speak] of odd) {
    it(`${what} is understood`, async () => {
      world = await startHostileWorld();
      world.evil.on('*', speak);
      expect((await world.resolve()).platforms).to.deep.equal([{ os: 'linux', architecture: 'amd64' }]);
      await world.expectNoHarm();
      for (const { text } of world.evil.asked) expect(text).to.not.match(/^cookie:/im);
    });
  }

  describe('contains a second answer that nobody asked for', () => {
    const other = response(200, [TYPE], JSON.stringify(indexOf('linux/s390x')));
    const first = response(200, [TYPE], GOOD);
    const seconds: readonly (readonly [what: string, speak: Speak])[] = [
      ['with the first', sends(first, other)],
      ['after its last chunk', sends(chunked(), chunk, '0\r\n\r\n', other)],
      ['as a redirect', sends(first, response(302, [['Location', 'http://169.254.169.254/']]))],
      ['as a challenge', sends(first, response(401, [['WWW-Authenticate', 'Basic realm="x"']]))],
      ['that is not an answer', sends(first, Buffer.alloc(1000, 'x'))],
      [
        'a moment later',
        (socket) => {
          socket.write(first);
          setImmediate(() => socket.write(other));
        },
      ],
      [
        'after a HEAD',
        (socket, { method }) => void socket.write(method === 'HEAD' ? Buffer.concat([response(200), other]) : first),
      ],
    ];
    for (const [what, speak] of seconds) {
      it(`${what} reaches no other request`, async () => {
        world = await startHostileWorld();
        world.evil.on('*', speak);
        const third = response(200, [TYPE], JSON.stringify(indexOf('linux/riscv64')));
        world.evil.on('/v2/next/manifests/v1', (socket) => void socket.write(third));
        for (let round = 0; round < 5; round += 1) {
          // The first may fail, because it may be unclear what belongs to it. The next one must get its own answer.
          const answer = await world.resolve(`app:v${round}`).catch(() => undefined);
          expect(answer?.platforms ?? []).to.not.deep.include({ os: 'linux', architecture: 's390x' });
          world.harness.advance(600_000);
          const next = await world.resolve('next:v1');
          expect(next.platforms).to.deep.equal([{ os: 'linux', architecture: 'riscv64' }]);
          expect(next.digest).to.equal(sha256(JSON.stringify(indexOf('linux/riscv64'))));
        }
        await world.expectNoHarm();
      });
    }
  });
});
