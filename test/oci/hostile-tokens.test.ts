import { expect } from 'chai';
import { drips, floods, head, type Speak, says, silent } from '../support/hostile-registry.ts';
import {
  BANK_LOGIN,
  BODY,
  base64,
  EVIL_LOGIN,
  type HostileWorld,
  manifest,
  shareHostileWorlds,
  startHostileWorld,
  strayed,
} from '../support/hostile-world.ts';
import { indexOf } from './server.ts';

const JSON_TYPE = [['Content-Type', 'application/json']] as const;

describe('a hostile registry that requires a token', () => {
  let world: HostileWorld;
  afterEach(() => world.stop());
  const shared = shareHostileWorlds();

  /** Challenges every request without a token and names a realm; CANARY, BANK and EVIL stand for ports. */
  function challenge(realm: string, more = ''): void {
    const named = realm
      .replaceAll('CANARY', String(world.canary.port))
      .replaceAll('BANK', String(world.bank.port))
      .replaceAll('EVIL', String(world.evil.port));
    const refusal = says(401, [['WWW-Authenticate', `Bearer realm="${named}"${more}`]], BODY);
    const answer = manifest(indexOf('linux/amd64'));
    world.evil.on('*', (socket, asked) => {
      const speak = asked.headers.get('authorization')?.startsWith('Bearer ') ? answer : refusal;
      speak(socket, asked);
    });
  }
  const token = (value: unknown): Speak => says(200, JSON_TYPE, JSON.stringify(value));

  describe('from a forbidden realm', () => {
    beforeEach(async () => {
      world = await shared();
    });
    const realms: readonly (readonly [realm: string, code: string])[] = [
      ['http://127.0.0.1:CANARY/token', 'forbidden-address'],
      ['https://127.0.0.1:CANARY/token', 'forbidden-address'],
      ['http://2130706433:CANARY/token', 'forbidden-address'],
      ['http://[::ffff:127.0.0.1]:CANARY/token', 'forbidden-address'],
      ['http://localhost:CANARY/token', 'forbidden-address'],
      ['http://canary.test:CANARY/token', 'forbidden-address'],
      ['http://evil.test:CANARY/token', 'forbidden-address'],
      ['http://169.254.169.254/latest/meta-data/', 'forbidden-address'],
      ['http://metadata.test/', 'forbidden-address'],
      ['http://mixed.test/', 'forbidden-address'],
      ['http://me:hunter2@evil.test:EVIL/token', 'forbidden-address'],
      ['http://evil.test:EVIL@127.0.0.1:CANARY/token', 'forbidden-address'],
      ['file:///var/run/secrets/kubernetes.io/serviceaccount/token', 'forbidden-address'],
      ['/token', 'malformed'],
    ];
    for (const [realm, code] of realms) {
      it(`as ${JSON.stringify(realm.slice(0, 60))} is ${code}`, async () => {
        world.names.set('metadata.test', ['169.254.169.254']);
        world.names.set('mixed.test', ['127.0.0.1', '169.254.169.254']);
        challenge(realm);
        expect(await world.fails()).to.include({ code, temporary: false });
        expect(strayed(world.evil, EVIL_LOGIN)).to.deep.equal([]);
        await world.expectNoHarm();
      });
    }

    it('and redirects there from its own is denied', async () => {
      challenge('http://evil.test:EVIL/token');
      for (const status of [301, 302, 303, 307, 308]) {
        const location = `http://127.0.0.1:${world.canary.port}/latest/meta-data/`;
        world.evil.on('/token', says(status, [['Location', location]]));
        expect(await world.fails(), String(status)).to.include({ code: 'denied', temporary: false });
      }
      await world.expectNoHarm();
    });
  });

  describe('from a realm that a redirect names, after its own challenge was answered', () => {
    beforeEach(async () => {
      world = await shared();
    });
    const realms = [
      'http://127.0.0.1:CANARY/token',
      'http://canary.test:CANARY/token',
      'https://[fd00:ec2::254]/',
      'http://metadata.test/',
      'http://me:hunter2@bank.test:CANARY/token',
    ];
    for (const realm of realms) {
      it(`as ${realm} is forbidden-address`, async () => {
        world.names.set('metadata.test', ['169.254.169.254']);
        const named = realm.replaceAll('CANARY', String(world.canary.port));
        const wanted = says(401, [['WWW-Authenticate', 'Basic realm="evil"']], BODY);
        const led = says(307, [['Location', `http://${world.hosts.bank}/v2/app/manifests/v1`]]);
        world.evil.on('*', (socket, asked) => (asked.headers.has('authorization') ? led : wanted)(socket, asked));
        world.bank.on('*', says(401, [['WWW-Authenticate', `Bearer realm="${named}"`]], BODY));
        expect(await world.fails()).to.include({ code: 'forbidden-address', temporary: false });
        expect(world.bank.asked.length).to.be.greaterThan(0);
        for (const { headers } of world.bank.asked) expect(headers.has('authorization')).to.equal(false);
        await world.expectNoHarm();
      });
    }
  });

  describe('from a realm at another host', () => {
    beforeEach(async () => {
      world = await startHostileWorld();
    });

    it('sends that host its own login, and never what is known of the other', async () => {
      challenge('http://bank.test:BANK/token');
      world.bank.on('/token', token({ token: 't' }));
      expect(await world.resolve())
        .to.have.property('platforms')
        .length(1);
      expect(world.bank.asked.map(({ headers }) => headers.get('authorization'))).to.deep.equal([
        `Basic ${base64(EVIL_LOGIN)}`,
      ]);
      expect(strayed(world.bank, BANK_LOGIN)).to.deep.equal([]);
      expect(strayed(world.evil, EVIL_LOGIN)).to.deep.equal([]);
    });

    it("requests the program's own scope, and beside it at most to read another one", async () => {
      challenge('http://bank.test:BANK/token?scope=repository:vault:pull&x=y', ',scope="repository:vault:pull,push"');
      world.bank.on('/token', token({ token: 't' }));
      await world.resolve();
      const { searchParams } = new URL(`http://x${world.bank.asked[0]?.target ?? ''}`);
      expect(searchParams.getAll('scope')).to.deep.equal(['repository:app:pull', 'repository:vault:pull']);
      expect(searchParams.get('x')).to.equal('y');
    });

    it('does not smuggle a second request by its service name', async () => {
      challenge('http://bank.test:BANK/token', ',service="a b&scope=repository:vault:pull%0d%0aX: y#z"');
      world.bank.on('/token', token({ token: 't' }));
      await world.resolve();
      const [asked, ...more] = world.bank.asked;
      expect(more).to.deep.equal([]);
      const { searchParams } = new URL(`http://x${asked?.target ?? ''}`);
      expect(searchParams.getAll('service')).to.deep.equal(['a b&scope=repository:vault:pull%0d%0aX: y#z']);
      expect(searchParams.getAll('scope')).to.deep.equal(['repository:app:pull']);
    });
  });

  describe('that is invalid', () => {
    const answers: readonly (readonly [what: string, speak: Speak, code: string])[] = [
      [
        'the page of an internal service',
        token({ AccessKeyId: BODY, Token: BODY, secret: { token: BODY } }),
        'malformed',
      ],
      ['a line break', token({ token: 'a\r\nX-Injected: yes' }), 'malformed'],
      ['300,000 characters', token({ token: 't'.repeat(300_000) }), 'too-large'],
      ['HTML', says(200, [['Content-Type', 'text/html']], `<h1>${BODY}</h1>`), 'malformed'],
      ['a compressed body', says(200, [['Content-Encoding', 'gzip']], 'x'), 'malformed'],
      ['nothing at all', says(204), 'unsupported'],
      ['a refusal', says(401, [['WWW-Authenticate', 'Bearer realm="http://evil.test/token"']], BODY), 'denied'],
      ['a rate limit', says(429, [['Retry-After', '999999999']], BODY), 'rate-limited'],
      ['a body without end', floods(head(200, []), `{"token":"${BODY}"}`), 'too-large'],
      ['a refusal without end', floods(head(403, []), BODY), 'denied'],
      ['a body that drips', drips(head(200, []), ' '), 'timeout'],
      ['a header that drips', drips('HTTP/1.1 200 OK\r\nX: ', 'x'), 'timeout'],
      ['silence', silent, 'timeout'],
      ['a lost connection', (socket) => socket.destroy(), 'unavailable'],
    ];
    for (const [what, speak, code] of answers) {
      it(`as ${what} is ${code}`, async () => {
        world = await shared(code === 'timeout' ? { timeoutMs: 100 } : {});
        challenge('http://evil.test:EVIL/token');
        world.evil.on('/token', speak);
        expect(await world.fails()).to.include({ code });
        for (const { text } of world.evil.asked) {
          expect(text).to.not.match(/^x-injected:/im);
          expect(text).to.not.include(BODY);
        }
        await world.expectNoHarm();
      });
    }
  });

  describe('again and again', () => {
    beforeEach(async () => {
      world = await shared();
    });
    it('is denied after a few requests', async () => {
      const challenge = `Bearer realm="http://${world.hosts.evil}/token",error="invalid_token"`;
      world.evil.on('*', says(401, [['WWW-Authenticate', challenge]], BODY));
      let count = 0;
      world.evil.on('/token', (socket, asked) => token({ token: `t${++count}` })(socket, asked));
      expect(await world.fails()).to.include({ code: 'denied', temporary: false });
      expect(world.evil.asked.length).to.be.at.most(8);
      await world.expectNoHarm();
    });

    const challenges: readonly (readonly [what: string, lines: readonly string[]])[] = [
      ['with commas', [','.repeat(8000)]],
      ['with a thousand schemes', [Array.from({ length: 1000 }, (_, index) => `s${index}`).join(', ')]],
      ['with a thousand headers', Array.from({ length: 900 }, () => 'Bearer')],
      ['with a quote that does not end', ['Bearer realm="http://x.test/']],
      ['for an unknown scheme', ['Negotiate YII=, Digest realm="x", AWS4-HMAC-SHA256']],
    ];
    for (const [what, lines] of challenges) {
      it(`${what} is denied`, async () => {
        const headers = lines.map((line) => ['WWW-Authenticate', line] as const);
        world.evil.on('*', says(401, headers, BODY));
        const { code } = await world.fails();
        // A header block of more than 16 KiB is not read.
        expect(code).to.be.oneOf(lines.length > 100 ? ['denied', 'malformed'] : ['denied']);
        expect(strayed(world.evil, EVIL_LOGIN)).to.deep.equal([]);
        expect(world.evil.asked.length).to.be.at.most(4);
        await world.expectNoHarm();
      });
    }
  });
});
