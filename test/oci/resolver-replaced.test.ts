import { expect } from 'chai';
import { createFailures, createImageCache } from '../../src/oci/cache.ts';
import { type Access, newFingerprintKey } from '../../src/oci/credentials/keyring.ts';
import {
  type Harness,
  indexOf,
  never,
  pullSecret,
  reply,
  type ScriptedServer,
  startResolver,
  startServer,
} from './server.ts';

describe('a resolver that replaces another', () => {
  let server: ScriptedServer;
  let first: Harness;
  let second: Harness;
  beforeEach(async () => {
    server = await startServer();
  });
  afterEach(async () => {
    first.stop();
    second.stop();
    await server.stop();
  });

  it('knows what failed and since when, and looks it up again after forgive', async () => {
    server.on('*', reply(503));
    const failures = createFailures({ maxEntries: 100, now: () => 999_999, random: () => 0.5 });
    const [image, access]: [string, Access] = [
      `${server.host}/app`,
      { namespace: 'a', pullSecrets: [], always: false },
    ];
    first = startResolver([server.host], { failures });
    await first.resolver.resolve(image, access, never).catch(() => undefined);
    first.stop();
    second = startResolver([server.host], { failures });
    expect(second.failure(image, access)).to.include({ sinceMs: 1 });
    second.resolver.look(image, access);
    expect(second.resolver.pending()).to.equal(0);
    const told: string[] = [];
    second.resolver.onSettled((canonical) => told.push(canonical));
    second.resolver.forgive();
    expect(told).to.deep.equal([`${server.host}/app:latest`]);
    expect(second.resolver.failing()).to.equal(1);
  });

  it('gives holders of a pull secret what the other found out with it, and no one else', async () => {
    const pullSecrets = async ({ pullSecrets: names }: Access) =>
      names.map((name) => pullSecret(name, { [server.host]: 'me:right' }));
    const [good, nobody] = [
      { namespace: 'a', pullSecrets: ['good'], always: false },
      { namespace: 'a', pullSecrets: [], always: false },
    ];
    const body = JSON.stringify(indexOf('linux/arm64'));
    server.on('/v2/private/manifests/v1', (request, response) =>
      (request.headers.authorization === undefined
        ? reply(401, { 'www-authenticate': 'Basic realm="x"' })
        : reply(200, { 'content-type': 'application/vnd.oci.image.index.v1+json' }, body))(request, response),
    );
    const shared = { cache: createImageCache(100), fingerprintKey: newFingerprintKey(), pullSecrets };
    const image = `${server.host}/private:v1`;
    first = startResolver([server.host], shared);
    await first.resolver.resolve(image, good, never);
    first.stop();
    const asked = server.asked.length;
    second = startResolver([server.host], shared);
    expect((await second.resolver.resolve(image, good, never)).platforms).to.have.lengthOf(1);
    expect(second.known(image, good)?.platforms).to.have.lengthOf(1);
    expect(server.asked).to.have.lengthOf(asked);
    expect(second.known(image, nobody)).to.equal(undefined);
  });
});
