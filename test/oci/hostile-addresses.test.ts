import { expect } from 'chai';
import { response } from '../support/hostile-registry.ts';
import { type HostileWorld, putSingle, shareHostileWorlds, startHostileWorld } from '../support/hostile-world.ts';

const CLOSE = [['Connection', 'close']] as const;

describe('a hostile name', () => {
  let world: HostileWorld;
  afterEach(() => world.stop());
  const shared = shareHostileWorlds();

  describe('that is itself forbidden', () => {
    beforeEach(async () => {
      world = await shared();
    });
    // All spellings of addresses are in http/address-guard.test.ts, all forbidden ranges in http/addresses.test.ts.
    const images = [
      '127.0.0.1:PORT/x',
      '0x7f.1:PORT/x',
      '2130706433:PORT/x',
      '[::ffff:127.0.0.1]:PORT/x',
      'LocalHost:PORT/x',
      'Canary.Test:PORT/x',
      '169.254.169.254/latest/meta-data',
      '[fd00:ec2::254]/x',
      'metadata.test/computemetadata',
    ];
    for (const image of images) {
      it(`as ${image} is not asked`, async () => {
        world.names.set('metadata.test', ['169.254.169.254']);
        const named = image.replace('PORT', String(world.canary.port));
        expect(await world.failsFor(named)).to.include({ code: 'forbidden-address', temporary: false });
        await world.expectNoHarm();
      });
    }
  });

  describe('that changes its address', () => {
    beforeEach(async () => {
      world = await shared();
    });
    /** Allowed until its first request, and forbidden from then on. */
    function rebind(addresses: readonly string[]): void {
      world.names.set('evil.test', () => (world.evil.asked.length === 0 ? ['127.0.0.1'] : addresses));
    }
    const turned = [['169.254.169.254'], ['127.0.0.1', '::ffff:a9fe:a9fe']];
    for (const addresses of turned) {
      it(`to ${addresses.join(' and ')} between manifest and config blob`, async () => {
        putSingle(world.evil, 'app', { os: 'linux', architecture: 'amd64' }, CLOSE);
        rebind(addresses);
        expect(await world.fails()).to.include({ code: 'forbidden-address' });
        expect(world.evil.asked).to.have.length(1);
        await world.expectNoHarm();
      });

      it(`to ${addresses.join(' and ')} between challenge and token`, async () => {
        const challenge = `Bearer realm="http://${world.hosts.evil}/token"`;
        const refusal = response(401, [['WWW-Authenticate', challenge], ...CLOSE]);
        world.evil.on('*', (socket) => void socket.end(refusal));
        rebind(addresses);
        expect(await world.fails()).to.include({ code: 'forbidden-address' });
        expect(world.evil.asked).to.have.length(1);
        await world.expectNoHarm();
      });

      it(`to ${addresses.join(' and ')} between redirect and target`, async () => {
        const answer = response(302, [['Location', '/next'], ...CLOSE]);
        world.evil.on('*', (socket) => void socket.end(answer));
        rebind(addresses);
        expect(await world.fails()).to.include({ code: 'forbidden-address' });
        expect(world.evil.asked).to.have.length(1);
        await world.expectNoHarm();
      });
    }
  });

  describe('of several addresses', () => {
    const mixed: readonly (readonly string[])[] = [
      ['127.0.0.1', '169.254.169.254'],
      ['169.254.169.254', '127.0.0.1'],
      ['127.0.0.1', '127.0.0.1', '::ffff:169.254.169.254'],
      ['127.0.0.1', 'fe80::1'],
      ['127.0.0.1', 'no address'],
    ];
    for (const addresses of mixed) {
      it(`as ${addresses.join(' and ')} is not asked at all`, async () => {
        world = await startHostileWorld();
        world.names.set('evil.test', addresses);
        const error = await world.fails();
        expect(error).to.include({ code: 'forbidden-address' });
        expect(error.message).to.not.match(/\d+\.\d+\.\d+\.\d+|::/);
        expect(world.evil.connections()).to.equal(0);
        await world.expectNoHarm();
      });
    }
  });

  describe('whose DNS answer', () => {
    beforeEach(async () => {
      world = await startHostileWorld({ timeoutMs: 200 });
    });
    it('is that it does not exist is unavailable', async () => {
      world.names.delete('evil.test');
      expect(await world.fails()).to.include({ code: 'unavailable', temporary: true });
      expect(world.evil.connections()).to.equal(0);
      await world.expectNoHarm();
    });

    it('comes too late delays no host whose name is known', async () => {
      await world.resolveGood();
      world.harness.advance(600_000);
      let answer = (_addresses: readonly string[]): void => undefined;
      const late = new Promise<readonly string[]>((resolve) => {
        answer = resolve;
      });
      world.names.set('evil.test', () => late);
      const asking = world.fails();
      expect(await world.resolveGood())
        .to.have.property('platforms')
        .length(1);
      expect(await asking).to.include({ code: 'timeout', temporary: true });
      answer(['169.254.169.254']);
      for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      await world.expectNoHarm();
    });

    it('is an address where nothing listens is unavailable', async () => {
      const port = world.evil.port;
      await world.evil.stop();
      expect(await world.failsFor(`evil.test:${port}/app:v1`))
        .to.include({ code: 'unavailable', temporary: true })
        .and.property('message')
        .not.match(/127\.0\.0\.1/);
      expect(world.canary.connections()).to.equal(0);
    });
  });

  it('that was public before cannot lead its token service to a private address', async () => {
    const policies: string[] = [];
    world = await startHostileWorld({
      send: async ({ url, policy }) => {
        policies.push(`${url.host} ${policy}`);
        const headers = { 'www-authenticate': 'Bearer realm="https://internal.test/token"' };
        return { status: 401, headers, body: new Uint8Array(), url };
      },
    });
    expect(await world.failsFor('public.test/app:v1')).to.include({ code: 'denied' });
    expect(policies).to.deep.equal(['public.test registry', 'internal.test public']);
  });
});
