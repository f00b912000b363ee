import { expect } from 'chai';
import { type HeaderLines, says } from '../support/hostile-registry.ts';
import {
  BANK_LOGIN,
  EVIL_LOGIN,
  type HostileWorld,
  manifest,
  putSingle,
  shareHostileWorlds,
  startHostileWorld,
  strayed,
} from '../support/hostile-world.ts';
import { indexOf } from './server.ts';

describe('a hostile registry that redirects', () => {
  let world: HostileWorld;
  afterEach(() => world.stop());
  const shared = shareHostileWorlds();

  /** A redirect; CANARY and EVIL stand for the ports of those servers. */
  const redirect = (location: string): HeaderLines => [
    ['Location', location.replaceAll('CANARY', String(world.canary.port)).replaceAll('EVIL', String(world.evil.port))],
  ];

  describe('to a forbidden host', () => {
    beforeEach(async () => {
      world = await shared();
    });
    // All spellings of addresses are in http/address-guard.test.ts, all forbidden ranges in http/addresses.test.ts.
    const places = [
      'http://127.0.0.1:CANARY/',
      'http://2130706433:CANARY/',
      'http://%31%32%37.0.0.1:CANARY/',
      'http://[::ffff:127.0.0.1]:CANARY/',
      'http://LOCALHOST:CANARY/',
      'http://canary.test:CANARY/v2/app/manifests/v1',
      '//127.0.0.1:CANARY/',
      '\\\\127.0.0.1:CANARY/',
      '\t//127.0.0.1:CANARY/',
      'https://127.0.0.1:CANARY/',
      'http://169.254.169.254/latest/meta-data/iam/security-credentials/',
      'https://169.254.169.254/',
      'http://[fd00:ec2::254]/',
    ];
    for (const location of places) {
      it(`as ${JSON.stringify(location)} writes it`, async () => {
        world.evil.on('*', says(302, redirect(location)));
        expect(await world.fails()).to.include({ code: 'forbidden-address', temporary: false });
        await world.expectNoHarm();
      });
    }

    const named: readonly (readonly [address: string, ...more: string[]])[] = [
      ['169.254.169.254'],
      ['127.0.0.1'],
      ['::ffff:169.254.169.254'],
      ['fe80::1%lo'],
      ['93.184.216.34', '169.254.169.254'],
      ['127.0.0.1', '93.184.216.34'],
      ['2606:2800:220:1::1', '::1'],
      ['no address'],
    ];
    for (const addresses of named) {
      it(`by a name of ${addresses.join(' and ')}, without revealing the address`, async () => {
        world.names.set('innocent.test', addresses);
        world.evil.on('*', says(307, redirect('http://innocent.test:CANARY/')));
        const error = await world.fails();
        expect(error).to.include({ code: 'forbidden-address', temporary: false });
        expect(error.message).to.match(/^innocent\.test:\d+ has an address that is not allowed/);
        for (const address of addresses) expect(error.message).to.not.include(address);
        await world.expectNoHarm();
      });
    }

    const schemes: readonly (readonly [location: string, code: string])[] = [
      ['file:///etc/passwd', 'forbidden-address'],
      ['http://me:hunter2@evil.test:EVIL/v2/', 'forbidden-address'],
      ['http://evil.test:EVIL@127.0.0.1:CANARY/', 'forbidden-address'],
      ['http://', 'malformed'],
      ['http://evil.test:99999/', 'malformed'],
    ];
    for (const [location, code] of schemes) {
      it(`or to something invalid: ${location} is ${code}`, async () => {
        world.evil.on('*', says(301, redirect(location)));
        expect(await world.fails()).to.include({ code, temporary: false });
        await world.expectNoHarm();
      });
    }

    it('without a location', async () => {
      world.evil.on('*', says(302));
      expect(await world.fails()).to.include({ code: 'malformed', temporary: false });
      await world.expectNoHarm();
    });

    for (const what of ['HEAD', 'config blob']) {
      it(`on a ${what}`, async () => {
        world = await startHostileWorld();
        world.evil.on('/v2/app/manifests/v1', manifest(indexOf('linux/amd64')));
        const blob = putSingle(world.evil, 'single', { os: 'linux', architecture: 'amd64' });
        if (what === 'HEAD') await world.resolve();
        world.harness.advance(600_000);
        const location = redirect('http://169.254.169.254:CANARY/');
        for (const path of ['/v2/app/manifests/v1', blob]) world.evil.on(path, says(302, location));
        expect(await world.fails(what === 'HEAD' ? 'app:v1' : 'single:v1')).to.include({ code: 'forbidden-address' });
        await world.expectNoHarm();
      });
    }
  });

  describe('for ever', () => {
    beforeEach(async () => {
      world = await startHostileWorld();
    });
    it('to itself', async () => {
      for (const location of ['', '/v2/app/manifests/v1', '#', '?', '.', '//evil.test:EVIL/v2/app/manifests/v1']) {
        world.evil.on('*', says(302, redirect(location)));
        const before = world.evil.asked.length;
        expect(await world.fails(), location).to.include({ code: 'malformed', temporary: false });
        expect(world.evil.asked.length - before, location).to.be.at.most(12);
      }
      await world.expectNoHarm();
    });

    it('in a circle', async () => {
      world.evil.on('*', says(302, redirect('/a')));
      world.evil.on('/a', says(308, redirect('/b')));
      world.evil.on('/b', says(303, redirect('/a')));
      expect(await world.fails()).to.include({ code: 'malformed', temporary: false });
      expect(world.evil.asked.length).to.be.at.most(12);
      await world.expectNoHarm();
    });

    it('to ever new places', async () => {
      let hop = 0;
      world.evil.on('*', (socket, asked) => says(302, redirect(`/hop/${++hop}`))(socket, asked));
      expect(await world.fails()).to.include({ code: 'malformed', temporary: false });
      expect(hop).to.be.at.most(12);
      await world.expectNoHarm();
    });

    it('and five redirects are followed, six are not', async () => {
      const end = manifest(indexOf('linux/amd64'));
      for (const [image, hops] of [
        ['five', 5],
        ['six', 6],
      ] as const) {
        world.evil.on(`/v2/${image}/manifests/v1`, says(307, redirect(`/${image}/1`)));
        for (let hop = 1; hop < hops; hop += 1) {
          world.evil.on(`/${image}/${hop}`, says(307, redirect(`/${image}/${hop + 1}`)));
        }
        world.evil.on(`/${image}/${hops}`, end);
      }
      expect(await world.resolve('five:v1'))
        .to.have.property('platforms')
        .length(1);
      expect(await world.fails('six:v1')).to.include({ code: 'malformed' });
      await world.expectNoHarm();
    });
  });

  describe('from https to http', () => {
    beforeEach(async () => {
      world = await startHostileWorld({ tls: 'insecure' });
    });
    for (const location of ['http://evil.test:CANARY/v2/', 'http://bank.test/', 'http://93.184.216.34/']) {
      it(`as ${location}`, async () => {
        world.evil.on('*', says(302, redirect(location)));
        expect(await world.fails())
          .to.include({ code: 'forbidden-address' })
          .and.property('message')
          .include('from https to http');
        await world.expectNoHarm();
      });
    }
  });

  describe('to another registry', () => {
    beforeEach(async () => {
      world = await startHostileWorld({ reachable: true });
    });
    const challenged = says(401, [['WWW-Authenticate', 'Basic realm="x"']]);
    /** The hostile registry requires its own login before it redirects. */
    function redirectHolders(location: string): void {
      world.evil.on('*', (socket, asked) => {
        const speak = asked.headers.has('authorization') ? says(302, redirect(location)) : challenged;
        speak(socket, asked);
      });
    }

    it('gives it no login: neither its own nor the first one', async () => {
      redirectHolders(`http://${world.hosts.bank}/v2/vault/manifests/v1`);
      expect(await world.fails()).to.include({ code: 'denied' });
      expect(strayed(world.evil, EVIL_LOGIN)).to.have.length(1);
      expect(world.bank.asked.length).to.be.greaterThan(0);
      for (const { headers } of world.bank.asked) {
        expect([...headers.keys()]).to.not.include.members(['authorization']);
        expect([...headers.keys()]).to.not.include.members(['cookie']);
      }
      expect(strayed(world.bank, BANK_LOGIN)).to.deep.equal([]);
      await world.expectNoHarm();
    });

    it('on another port of the same host gives it no login', async () => {
      redirectHolders(`http://evil.test:${world.canary.port}/v2/app/manifests/v1`);
      await world.resolve().catch(() => undefined);
      expect(world.canary.asked.length).to.be.greaterThan(0);
      for (const { text } of world.canary.asked) expect(text).to.not.match(/^(authorization|cookie):/im);
    });

    it('on the same origin keeps the login, as a registry behind a path needs it', async () => {
      redirectHolders('/elsewhere');
      world.evil.on('/elsewhere', (socket, asked) => {
        const speak = asked.headers.has('authorization') ? manifest(indexOf('linux/amd64')) : challenged;
        speak(socket, asked);
      });
      expect(await world.resolve())
        .to.have.property('platforms')
        .length(1);
      await world.expectNoHarm();
    });

    it('which names a token service on http is refused, because the operator did not name it as insecure', async () => {
      world.bank.on('*', says(401, [['WWW-Authenticate', `Bearer realm="http://${world.hosts.bank}/token"`]]));
      // The same server, under a name that the configuration does not have.
      world.evil.on('*', says(302, redirect(`http://evil.test:${world.bank.port}/v2/vault/manifests/v1`)));
      expect(await world.fails()).to.include({ code: 'forbidden-address' });
      expect(world.bank.asked.length).to.be.greaterThan(0);
      expect(world.bank.asked.map(({ target }) => target)).to.not.include.members(['/token']);
      await world.expectNoHarm();
    });

    it('sets cookies that are never sent', async () => {
      world.evil.on('*', says(302, [['Set-Cookie', 'session=INTERNAL-PAGE; Path=/'], ...redirect('/next')]));
      world.evil.on('/next', manifest(indexOf('linux/amd64')));
      await world.resolve();
      for (const { text } of [...world.evil.asked, ...world.bank.asked]) expect(text).to.not.match(/^cookie:/im);
      await world.expectNoHarm();
    });
  });
});
