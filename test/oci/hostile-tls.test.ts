import { expect } from 'chai';
import { says } from '../support/hostile-registry.ts';
import {
  base64,
  EVIL_LOGIN,
  type HostileWorld,
  manifest,
  startHostileWorld,
  strayed,
} from '../support/hostile-world.ts';
import { indexOf } from './server.ts';

describe('a hostile registry that the operator did not name as insecure', () => {
  let world: HostileWorld;
  beforeEach(async () => {
    world = await startHostileWorld({ tls: 'verified', reachable: true });
  });
  afterEach(() => world.stop());

  const good = manifest(indexOf('linux/amd64'));
  const json = (value: unknown) => says(200, [['Content-Type', 'application/json']], JSON.stringify(value));
  /** Challenges every request without a token, on every host of the server. */
  function challenge(realm: string): void {
    const refusal = says(401, [['WWW-Authenticate', `Bearer realm="${realm}"`]]);
    world.evil.on('*', (socket, asked) => {
      const speak = asked.headers.get('authorization') === 'Bearer t' ? good : refusal;
      speak(socket, asked);
    });
    world.evil.on('/token', json({ token: 't' }));
  }
  const authorizations = (host: string): string[] =>
    world.evil.asked
      .filter(({ headers }) => headers.get('host') === `${host}:${world.evil.port}`)
      .map(({ target, headers }) => `${target.split('?')[0]} ${headers.get('authorization') ?? '-'}`);

  it('cannot name a token service on http, however near', async () => {
    for (const host of [world.hosts.bank, `evil.test:${world.bank.port}`, `127.0.0.1:${world.bank.port}`]) {
      challenge(`http://${host}/token`);
      expect(await world.fails(), host).to.include({ code: 'forbidden-address', temporary: false });
    }
    expect(world.bank.asked).to.deep.equal([]);
    expect(strayed(world.evil, EVIL_LOGIN)).to.deep.equal([]);
    await world.expectNoHarm();
  });

  it('can name one on https at another host, which gets the login for the first host', async () => {
    challenge(`https://other.test:${world.evil.port}/token`);
    expect(await world.resolve())
      .to.have.property('platforms')
      .length(1);
    expect(authorizations('other.test')).to.deep.equal([`/token Basic ${base64(EVIL_LOGIN)}`]);
    await world.expectNoHarm();
  });

  it('redirects to a host that requires a token, which is requested anonymously', async () => {
    challenge(`https://other.test:${world.evil.port}/token`);
    const target = '/v2/mirror/manifests/v1';
    const path = '/v2/app/manifests/v1';
    world.evil.on(path, says(307, [['Location', `https://other.test:${world.evil.port}${target}`]]));
    expect(await world.resolve())
      .to.have.property('platforms')
      .length(1);
    expect(authorizations('other.test')).to.deep.equal([`${target} -`, '/token -', `${target} Bearer t`]);
    expect(strayed(world.evil, EVIL_LOGIN)).to.deep.equal([]);
    await world.expectNoHarm();
  });

  it('redirects to http, which is refused', async () => {
    // The bank's server, under a name that the configuration does not have.
    world.evil.on('*', says(302, [['Location', `http://evil.test:${world.bank.port}/v2/`]]));
    expect(await world.fails()).to.include({ code: 'forbidden-address', temporary: false });
    expect(world.bank.asked).to.deep.equal([]);
    await world.expectNoHarm();
  });

  it('redirects to a registry on http that the operator named, which is asked anonymously', async () => {
    world.evil.on('*', says(302, [['Location', `http://${world.hosts.bank}/v2/`]]));
    expect(await world.fails()).to.include({ code: 'denied' });
    expect(world.bank.asked.map(({ target, headers }) => [target, headers.has('authorization')])).to.deep.equal([
      ['/v2/', false],
      ['/v2/', false],
    ]);
    await world.expectNoHarm();
  });

  it('has a certificate for another name, and is not asked', async () => {
    expect(await world.failsFor(`wrong.test:${world.evil.port}/app:v1`)).to.include({ code: 'unavailable' });
    expect(world.evil.asked).to.deep.equal([]);
    await world.expectNoHarm();
  });

  it('redirects to a certificate for another name, which is not asked', async () => {
    world.evil.on('*', says(302, [['Location', `https://wrong.test:${world.evil.port}/v2/`]]));
    expect(await world.fails()).to.include({ code: 'unavailable' });
    expect(world.evil.asked.map(({ headers }) => headers.get('host'))).to.not.include(`wrong.test:${world.evil.port}`);
    await world.expectNoHarm();
  });

  it('that does not speak TLS is not asked over plain http', async () => {
    expect(await world.failsFor(`other.test:${world.canary.port}/app:v1`)).to.include({ code: 'unavailable' });
    expect(world.canary.asked).to.deep.equal([]);
  });

  it('that sends nothing after the handshake has begun leads to a timely end', async () => {
    await world.stop();
    world = await startHostileWorld({ tls: 'verified', reachable: true, timeoutMs: 100 });
    world.bank.greet(() => undefined);
    expect(await world.failsFor(`other.test:${world.bank.port}/app:v1`)).to.include({ code: 'timeout' });
    world.bank.behave();
    await world.expectNoHarm();
  });
});
